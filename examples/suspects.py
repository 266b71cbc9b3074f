"""A model that does not train, asked afterwards: no ledger was open, so its source is read for suspects.

    python examples/suspects.py

`examples/why_no_grad.py` opens one, and is told the line for certain.
"""

import gradscope as gs
import gradscope.inspect as gi
from gradscope import nn


class Classifier(nn.Module):
    """Standardises what the body makes of its input, and weighs it."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 4), nn.Tanh())
        self.gate = nn.Linear(8, 4)
        self.head = nn.Linear(4, 2)
        self.spare = nn.Linear(4, 2)

    def forward(self, x: gs.Tensor) -> gs.Tensor:
        hidden = self.body(x)
        scale = hidden.std().item()
        hidden = hidden.detach() / scale
        mask = self.gate(x) > 0
        return self.head(hidden * mask)


def main() -> None:
    gs.manual_seed(0)
    model = Classifier()
    loss = (model(gs.randn(16, 8)) ** 2).mean()
    loss.backward()
    print(gi.why_no_grad(model, loss))


if __name__ == "__main__":
    main()
