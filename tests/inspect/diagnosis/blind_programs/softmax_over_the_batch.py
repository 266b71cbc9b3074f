import gradscope as torch
from gradscope import nn

torch.manual_seed(0)


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(1, 2) / x.shape[-1] ** 0.5
        weights = torch.softmax(scores, dim=0)
        return weights @ self.v(x)


attend, head = Attention(16), nn.Linear(16, 2)
optimizer = torch.optim.Adam([*attend.parameters(), *head.parameters()], lr=3e-3)
for step in range(30):
    x = torch.randn(16, 9, 16)
    y = (x[:, 0, 0] > 0).long()
    loss = nn.functional.cross_entropy(head(attend(x).mean(1)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
