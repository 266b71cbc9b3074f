import gradscope as gs
from gradscope import nn

gs.manual_seed(0)
embedding = nn.Embedding(20, 16, padding_idx=0)
head = nn.Linear(16, 2)
optimizer = gs.optim.Adam([*embedding.parameters(), *head.parameters()], lr=1e-2)
for step in range(20):
    words = gs.randint(0, 20, (16, 6))
    labels = (words == 0).any(1).long()
    loss = nn.functional.cross_entropy(head(embedding(words).mean(1)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
