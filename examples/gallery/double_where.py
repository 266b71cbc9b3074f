"""An ELU written by hand: the loss is a number, and the gradients of the layer below are NaN."""

import gradscope as gs


class Elu(gs.nn.Module):
    """The argument where it is positive, exp(x) - 1 elsewhere."""

    def forward(self, x):
        return gs.where(x > 0, x, gs.exp(x) - 1)


gs.manual_seed(0)
model = gs.nn.Sequential(gs.nn.Linear(3, 8), Elu(), gs.nn.Linear(8, 1))
rows = gs.randn(16, 3) * gs.tensor([1.0, 1.0, 300.0])  # the third column is in other units

loss = gs.nn.functional.smooth_l1_loss(model(rows), rows[:, :1])
loss.backward()
print(f"loss {loss.item():.4f}")
for name, parameter in model.named_parameters():
    print(f"{name}: {'NaN' if parameter.grad.isnan().any() else 'finite'}")
