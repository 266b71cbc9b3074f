import gradscope as torch
from gradscope import nn

torch.manual_seed(0)
images = torch.randint(0, 256, (200, 64)).float() / 255
labels = (images[:, :32].mean(1) > images[:, 32:].mean(1)).long()


def load(rows):
    return images[rows] / 255, labels[rows]


model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(40):
    x, y = load(torch.randint(0, 200, (25,)))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
