"""A trained model gets a new head for three classes, to be tuned on them: the head stays as it was made."""

import gradscope as gs


class Classifier(gs.nn.Module):
    """Features, and a head that tells ten classes apart."""

    def __init__(self):
        super().__init__()
        self.features = gs.nn.Sequential(gs.nn.Linear(8, 16), gs.nn.ReLU())
        self.head = gs.nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.features(x))


gs.manual_seed(0)
model = Classifier()
optimizer = gs.optim.Adam(model.parameters(), lr=1e-2)
model.head = gs.nn.Linear(16, 3)
before = model.head.weight.detach().clone()
images, labels = gs.randn(64, 8), gs.randint(0, 3, (64,))

for step in range(5):
    optimizer.zero_grad()
    loss = gs.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
print("the head has moved by", (model.head.weight - before).abs().max().item())
