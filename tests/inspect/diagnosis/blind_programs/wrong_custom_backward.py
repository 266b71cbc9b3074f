import gradscope as torch
from gradscope import nn

torch.manual_seed(0)


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad * s * (1 - s)


first, second = nn.Linear(4, 32), nn.Linear(32, 1)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.05)
for step in range(30):
    x = torch.randn(64, 4)
    loss = ((second(Swish.apply(first(x))) - x.prod(1, keepdim=True)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
