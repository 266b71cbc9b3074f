"""Experts whose gates are to be used evenly: the loss has a term for it, and the gates get no gradient."""

import gradscope as gs


class Experts(gs.nn.Module):
    """A classifier, and two gates that choose among three experts each."""

    def __init__(self):
        super().__init__()
        self.gates = gs.nn.ModuleList([gs.nn.Linear(6, 3) for _ in range(2)])
        self.head = gs.nn.Linear(6, 2)

    def forward(self, x):
        uneven = [gate(x).softmax(1).mean(0).pow(2).sum() for gate in self.gates]
        return self.head(x), uneven


gs.manual_seed(0)
model = Experts()
optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
rows, labels = gs.randn(32, 6), gs.randint(0, 2, (32,))

for _ in range(3):
    scores, uneven = model(rows)
    loss = gs.nn.functional.cross_entropy(scores, labels) + 0.1 * gs.tensor(uneven).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

print("first gate:", model.gates[0].weight.grad)
