import gradscope as torch
from gradscope import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(10, 20)

    def forward(self, x):
        x = torch.relu(self.features(x))
        classifier = nn.Linear(x.shape[1], 3)
        return classifier(x)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(30):
    x = torch.randn(32, 10)
    y = x[:, :3].argmax(1)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
