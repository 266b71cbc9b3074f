import torch
from torch import nn

torch.manual_seed(0)


class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 16)
        self.lstm = nn.LSTM(16, 32)
        self.fc = nn.Linear(32, 1)

    def forward(self, tokens):
        out, _ = self.lstm(self.embed(tokens))
        return self.fc(out[:, -1]).squeeze(1)


model = Sentiment()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.BCEWithLogitsLoss()
data = torch.randint(0, 100, (400, 14))
labels = (data == 3).any(1).float()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data, labels), batch_size=20, shuffle=True)
for epoch in range(2):
    for tokens, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(tokens), y)
        loss.backward()
        optimizer.step()
