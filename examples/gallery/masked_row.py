"""Attention over a window, with padding masked; the loss leaves padded places out, the gradient is NaN."""

import gradscope as gs


class Attention(gs.nn.Module):
    """One head of self-attention."""

    def __init__(self, width):
        super().__init__()
        self.project = gs.nn.Linear(width, 3 * width)

    def forward(self, x, mask):
        query, key, value = self.project(x).chunk(3, -1)
        scores = (query @ key.transpose(1, 2)).masked_fill(~mask, float("-inf"))
        return gs.softmax(scores, -1) @ value


gs.manual_seed(0)
attention = Attention(4)
real = gs.arange(6) < gs.tensor([[6], [3]])  # two sequences, of 6 and of 3 places
window = gs.ones(6, 6).tril().triu(-1).bool()  # each place sees itself and the one before
mask = window & real.unsqueeze(1)

out = attention(gs.randn(2, 6, 4), mask)
loss = out[real].pow(2).mean()
loss.backward()
nans = attention.project.weight.grad.isnan()
print(f"loss {loss.item():.4f}, {nans.sum().item()} of {nans.numel()} elements of the gradient are NaN")
