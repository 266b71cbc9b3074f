"""A training that is as it should be: a network of torch_geometric on batches of small graphs."""

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MLP, GINConv, global_add_pool

torch.manual_seed(27)
graphs = [
    Data(x=torch.randn(nodes, 4), edge_index=torch.randint(0, nodes, (2, 3 * nodes)), y=torch.tensor([nodes % 2]))
    for nodes in torch.randint(5, 12, (32,)).tolist()
]


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = torch.nn.ModuleList([GINConv(MLP([4, 16, 16])), GINConv(MLP([16, 16, 16]))])
        self.head = MLP([16, 16, 2], norm=None, dropout=0.2)

    def forward(self, x, edges, batch, size):
        for conv in self.convs:
            x = conv(x, edges).relu()
        return self.head(global_add_pool(x, batch, size=size))


model = Network()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(3):
    model.train()
    for data in DataLoader(graphs, batch_size=8, shuffle=True):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index, data.batch, data.num_graphs)
        torch.nn.functional.cross_entropy(out, data.y).backward()
        optimizer.step()
