"""A model of which half does not train: which half, why, and on which line the gradient was lost.

    python examples/why_no_grad.py

`gradscope doctor examples/why_no_grad.py` says the same of the script as it stands, without the lines that ask.
"""

import gradscope as gs
import gradscope.inspect as gi
from gradscope import nn


class Retriever(nn.Module):
    """Scores queries against keys, and reads the value of the best key."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(8, 4)
        self.keys = nn.Parameter(gs.randn(16, 4))
        self.values = nn.Parameter(gs.randn(16, 3))
        self.temperature = nn.Parameter(gs.ones(1))
        self.gate = nn.Linear(3, 3)

    def forward(self, x: gs.Tensor) -> gs.Tensor:
        scores = self.query(x) @ self.keys.t()
        best = (scores / self.temperature).argmax(1)
        return self.values[best]


def main() -> None:
    gs.manual_seed(0)
    model = Retriever()
    with gi.ledger():
        loss = (model(gs.randn(32, 8)) ** 2).mean()
    loss.backward()
    print(gi.why_no_grad(model, loss))


if __name__ == "__main__":
    main()
