import gradscope as torch
from gradscope import nn

torch.manual_seed(0)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [16, 128, 128, 128, 4]
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(a, b)) for a, b in zip(sizes, sizes[1:])])

    def forward(self, x):
        for weight in list(self.weights)[:-1]:
            x = torch.relu(x @ weight)
        return x @ self.weights[-1]


model = MLP()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(30):
    x = torch.randn(32, 16)
    loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
