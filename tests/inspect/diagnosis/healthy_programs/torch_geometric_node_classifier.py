"""A training that is as it should be: a graph attention network of torch_geometric on the nodes of one graph."""

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.utils import to_undirected

torch.manual_seed(26)
data = Data(
    x=torch.randn(60, 8), edge_index=to_undirected(torch.randint(0, 60, (2, 150))), y=torch.randint(0, 3, (60,))
)
data.train_mask = torch.arange(60) < 40


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = GATConv(8, 8, heads=4, dropout=0.3)
        self.second = GCNConv(32, 3)

    def forward(self, x, edges):
        x = torch.nn.functional.dropout(x, p=0.3, training=self.training)
        x = torch.nn.functional.elu(self.first(x, edges))
        return self.second(x, edges)


model = Network()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)
for _ in range(10):
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    torch.nn.functional.cross_entropy(out[data.train_mask], data.y[data.train_mask]).backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        model(data.x, data.edge_index)[~data.train_mask].argmax(1)
