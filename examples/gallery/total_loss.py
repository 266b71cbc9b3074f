"""The mean loss of an epoch is summed up along the way: memory grows with every batch until there is none."""

import gradscope as gs


def train_epoch(model, optimizer, batches):
    total_loss = 0
    for _ in range(batches):
        rows, labels = gs.randn(16, 8), gs.randint(0, 2, (16,))
        loss = gs.nn.functional.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total_loss += loss
    return total_loss / batches


gs.manual_seed(0)
model = gs.nn.Sequential(gs.nn.Linear(8, 32), gs.nn.ReLU(), gs.nn.Linear(32, 2))
optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
print(f"mean loss {train_epoch(model, optimizer, 12):.4f}")
