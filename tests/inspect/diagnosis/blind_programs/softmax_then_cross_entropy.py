import torch
from torch import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(20, 64)
        self.out = nn.Linear(64, 10)

    def forward(self, x):
        x = torch.relu(self.hidden(x))
        return torch.softmax(self.out(x), dim=1)


x = torch.randn(512, 20)
y = (x @ torch.randn(20, 10)).argmax(1)
model = Classifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(40):
    rows = torch.randint(0, 512, (64,))
    optimizer.zero_grad()
    loss = criterion(model(x[rows]), y[rows])
    loss.backward()
    optimizer.step()
