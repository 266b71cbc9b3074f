"""Two towers, of which one is cut off by `.data`."""

import gradscope as gs
from gradscope import nn

gs.manual_seed(0)


class Towers(nn.Module):
    """An image and a text, brought together."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16))
        self.text = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16))
        self.head = nn.Linear(32, 3)

    def forward(self, image: gs.Tensor, text: gs.Tensor) -> gs.Tensor:
        """Return the scores."""
        seen = self.image(image)
        read = self.text(text)
        read = read.data
        return self.head(gs.cat([seen, read], 1))


towers = Towers()
scores = towers(gs.randn(4, 8), gs.randn(4, 6))
loss = nn.functional.cross_entropy(scores, gs.tensor([0, 1, 2, 0]))
loss.backward()
