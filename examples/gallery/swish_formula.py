"""Swish as a Function of its own, one node in place of two: the loss falls, but not as with x * sigmoid(x)."""

import gradscope as gs


class Swish(gs.autograd.Function):
    """x * sigmoid(x)."""

    @staticmethod
    def forward(ctx, x):
        gate = gs.sigmoid(x)
        ctx.save_for_backward(x, gate)
        return x * gate

    @staticmethod
    def backward(ctx, grad):
        x, gate = ctx.saved_tensors
        return grad * (gate + x * gate)


def main():
    gs.manual_seed(0)
    first, second = gs.nn.Linear(4, 16), gs.nn.Linear(16, 1)
    optimizer = gs.optim.SGD([*first.parameters(), *second.parameters()], lr=0.05)
    rows = gs.randn(64, 4)
    for step in range(5):
        loss = gs.nn.functional.mse_loss(second(Swish.apply(first(rows))), rows.prod(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
