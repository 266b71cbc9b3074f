import gradscope as torch
from gradscope import nn

torch.manual_seed(0)
model = nn.LSTM(3, 16, batch_first=True)
head = nn.Linear(16, 1)
parameters = [*model.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
for step in range(25):
    x = torch.randn(8, 10, 3) * 4
    loss = ((head(model(x)[0][:, -1]) - x.sum((1, 2)).unsqueeze(1)) ** 2).mean()
    optimizer.zero_grad()
    nn.utils.clip_grad_norm_(parameters, 1.0)
    loss.backward()
    optimizer.step()
