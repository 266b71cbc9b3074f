"""A recurrent network reads a long series in pieces, its state goes from each to the next: the second raises."""

import gradscope as gs


class Recurrent(gs.nn.Module):
    """Predicts the next value of a series."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.inner = gs.nn.Linear(inputs + hidden, hidden)
        self.out = gs.nn.Linear(hidden, inputs)

    def forward(self, x, hidden):
        hidden = gs.tanh(self.inner(gs.cat([x, hidden], 1)))
        return self.out(hidden), hidden


gs.manual_seed(0)
model = Recurrent(4, 8)
optimizer = gs.optim.Adam(model.parameters(), lr=1e-2)
series = gs.randn(20, 2, 4)
hidden = gs.zeros(2, 8)

for start in range(0, 15, 5):
    loss = 0
    for place in range(start, start + 5):
        guess, hidden = model(series[place], hidden)
        loss = loss + gs.nn.functional.mse_loss(guess, series[place + 1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
