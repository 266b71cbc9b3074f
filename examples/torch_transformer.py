"""A PyTorch program for the debugger to open: a small Transformer that learns to write a sequence backwards.

    gradscope debug examples/torch_transformer.py

It needs PyTorch, and knows nothing of gradscope.
"""

import argparse

import torch
from torch import nn


class Reverser(nn.Module):
    """Two encoder layers between an embedding and a linear layer."""

    def __init__(self, symbols: int, length: int, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Embedding(symbols, width)
        self.place = nn.Parameter(torch.randn(length, width) * 0.1)
        layer = nn.TransformerEncoderLayer(width, nhead=4, dim_feedforward=64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2)
        self.head = nn.Linear(width, symbols)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.embed(sequence) + self.place))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150)
    steps = parser.parse_args().steps
    torch.manual_seed(0)
    model = Reverser(symbols=8, length=6)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for step in range(1, steps + 1):
        sequence = torch.randint(8, (32, 6))
        scores = model(sequence)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), sequence.flip(1).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
