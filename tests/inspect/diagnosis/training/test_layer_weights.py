"""Layers are told by the name of their class, which a program may give to its own."""

import gradscope.inspect as gi


def test_a_program_runs_whose_layers_have_the_names_of_others(fw):
    class Embedding(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = fw.nn.Embedding(10, 4)

        def forward(self, x):
            return self.table(x)

    class Linear(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = fw.nn.Linear(4, 4)

        def weight(self):  # so it is in a quantised layer
            return self.inner.weight

        def forward(self, x):
            return self.inner(x)

    class WordDropout(fw.nn.Module):
        p = None

        def forward(self, x):
            return x

    fw.manual_seed(0)
    model = fw.nn.Sequential(Embedding(), WordDropout(), Linear(), fw.nn.Tanh(), Linear())
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.Doctor() as doctor:
        for _ in range(2):
            optimizer.zero_grad()
            (model(fw.arange(6)) - 1).square().mean().backward()
            optimizer.step()
    assert not doctor.diagnosis.symptoms
