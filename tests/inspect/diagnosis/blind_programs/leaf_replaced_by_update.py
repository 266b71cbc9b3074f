import gradscope as torch

torch.manual_seed(0)
x = torch.randn(100, 3)
y = x @ torch.tensor([[1.0], [-2.0], [0.5]])
w = torch.zeros(3, 1, requires_grad=True)
for step in range(20):
    loss = ((x @ w - y) ** 2).mean()
    loss.backward()
    w = w - 0.1 * w.grad
    print(step, loss.item())
