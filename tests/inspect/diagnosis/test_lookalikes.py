"""Programs that look like each of the causes that the doctor names, and are meant: nothing is said of them."""

import warnings

import pytest

import gradscope.inspect as gi

LOOKALIKES = {}


def of(cause):
    """Register a program that looks like a cause."""
    return lambda program: LOOKALIKES.setdefault(cause, program)


def train(fw, model, loss, *, steps=6, optimizer=None, before=None):
    """Take steps of a model, as one does."""
    optimizer = optimizer or fw.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model).backward()
        if before is not None:
            before()
        optimizer.step()


def mlp(fw, *between, inputs=4, outputs=2):
    return fw.nn.Sequential(fw.nn.Linear(inputs, 16), *between, fw.nn.Tanh(), fw.nn.Linear(16, outputs))


@of("a batch norm in eval mode")
def frozen_statistics(fw):
    model = mlp(fw, fw.nn.BatchNorm1d(16))
    for _ in range(3):
        model.train()
        train(fw, model, lambda m: m(fw.randn(8, 4)).square().mean(), steps=2)
        model.eval()
        with fw.no_grad():
            model(fw.randn(8, 4))


@of("a dropout at validation")
def uncertainty_by_dropout(fw):
    model = mlp(fw, fw.nn.Dropout(0.1))
    train(fw, model, lambda m: m(fw.randn(8, 4)).square().mean())
    model.eval()
    with fw.no_grad():
        fw.nn.functional.dropout(model(fw.randn(8, 4)), 0.1, training=True)


@of("a summed loss")
def sum_with_a_rate_for_it(fw):
    model = mlp(fw)
    rate = fw.optim.SGD(model.parameters(), lr=1e-4)
    train(fw, model, lambda m: (m(fw.randn(8, 4)) - 1).square().sum(), optimizer=rate)


@of("accumulation that is not divided")
def divided_accumulation(fw):
    model = mlp(fw)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(4):
        optimizer.zero_grad()
        for _ in range(4):
            ((model(fw.randn(8, 4)) - 1).square().mean() / 4).backward()
        optimizer.step()


@of("weights that are constant")
def zero_last_layer(fw):
    model = mlp(fw)
    with fw.no_grad():
        model[-1].weight.zero_()
    train(fw, model, lambda m: (m(fw.randn(8, 4)) - fw.randn(8, 2)).square().mean())


@of("weights that explode")
def orthogonal_weights(fw):
    model = fw.nn.Sequential(*(fw.nn.Sequential(fw.nn.Linear(16, 16), fw.nn.Tanh()) for _ in range(6)))
    for block in model:
        fw.nn.init.orthogonal_(block[0].weight)
    train(fw, model, lambda m: (m(fw.randn(8, 16)) - 1).square().mean())


@of("dead units")
def sparse_activations(fw):
    model = fw.nn.Sequential(fw.nn.Linear(4, 32), fw.nn.ReLU(), fw.nn.Linear(32, 2))
    with fw.no_grad():
        model[0].bias.fill_(-0.3)
    train(fw, model, lambda m: (m(fw.randn(64, 4)) - 1).square().mean())


@of("saturated units")
def gates_that_open(fw):
    gate = fw.nn.Sequential(fw.nn.Linear(4, 16), fw.nn.Sigmoid(), fw.nn.Linear(16, 2))
    with fw.no_grad():
        gate[0].bias.fill_(2.0)
    train(fw, gate, lambda m: (m(fw.randn(8, 4)) - 1).square().mean())


@of("gradients in one memory")
def gradients_in_a_bucket(fw):
    model = fw.nn.Linear(4, 2)
    bucket = fw.zeros(10)
    model.weight.grad, model.bias.grad = bucket[:8].view(2, 4), bucket[8:]
    for _ in range(3):
        bucket.zero_()
        (model(fw.randn(8, 4)) - 1).square().mean().backward()
        with fw.no_grad():
            for parameter in model.parameters():
                parameter -= 0.01 * parameter.grad


@of("a weight tying that was lost")
def tied_weights(fw):
    class Model(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.decoder = fw.nn.Embedding(6, 4), fw.nn.Linear(4, 6, bias=False)
            self.decoder.weight = self.embed.weight

        def forward(self, tokens):
            return self.decoder(fw.tanh(self.embed(tokens)))

    tokens = fw.arange(6)
    train(fw, Model(), lambda m: fw.nn.functional.cross_entropy(m(tokens), (tokens + 1) % 6))


@of("steps that are too small")
def a_warm_up(fw):
    model = mlp(fw)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.1)
    schedule = fw.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 1e6))
    for _ in range(8):
        optimizer.zero_grad()
        (model(fw.randn(8, 4)) - 1).square().mean().backward()
        optimizer.step()
        schedule.step()


@of("shapes that broadcast in the loss")
def weights_of_samples(fw):
    weights = fw.rand(8, 1)
    train(fw, mlp(fw), lambda m: (weights * (m(fw.randn(8, 4)) - fw.randn(8, 2)).square()).mean())


@of("a softmax twice")
def attention_before_the_logits(fw):
    class Pool(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.score, self.head = fw.nn.Linear(4, 1), fw.nn.Linear(4, 3)

        def forward(self, x):
            return self.head((fw.softmax(self.score(x), 1) * x).sum(1))

    train(fw, Pool(), lambda m: fw.nn.functional.cross_entropy(m(fw.randn(8, 5, 4)), fw.arange(8) % 3))


@of("zero_grad, clip and step in the wrong order")
def zero_grad_after_the_step(fw):
    model = mlp(fw)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(5):
        (model(fw.randn(8, 4)) - 1).square().mean().backward()
        fw.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


@of("an optimizer without parameters of the model")
def two_optimizers_for_two_halves(fw):
    body, head = fw.nn.Linear(4, 8), fw.nn.Linear(8, 1)
    optimizers = [fw.optim.SGD(part.parameters(), lr=0.01) for part in (body, head)]
    for _ in range(4):
        for optimizer in optimizers:
            optimizer.zero_grad()
        (head(fw.tanh(body(fw.randn(8, 4)))) - 1).square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()


@of("a hidden state that is detached")
def truncated_after_each_window(fw):
    cell, head = fw.nn.GRUCell(3, 8), fw.nn.Linear(8, 1)
    optimizer = fw.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
    hidden = fw.zeros(2, 8)
    for _ in range(4):
        optimizer.zero_grad()
        hidden = hidden.detach()
        for _ in range(4):
            hidden = cell(fw.randn(2, 3), hidden)
        (head(hidden) - 1).square().mean().backward()
        optimizer.step()


@of("a mask that is inverted")
def causal_mask(fw):
    class Attention(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value = (fw.nn.Linear(8, 8) for _ in range(3))

        def forward(self, x):
            scores = self.query(x) @ self.key(x).transpose(-2, -1) / 8**0.5
            future = fw.triu(fw.ones(5, 5), diagonal=1).bool()
            return fw.softmax(scores.masked_fill(future, float("-inf")), -1) @ self.value(x)

    train(fw, Attention(), lambda m: (m(fw.randn(2, 5, 8)) - 1).square().mean())


@of("samples that influence each other")
def contrastive_pairs(fw):
    def loss(model):
        one, two = (fw.nn.functional.normalize(model(fw.randn(8, 4)), dim=1) for _ in range(2))
        return fw.nn.functional.cross_entropy(one @ two.transpose(0, 1) / 0.1, fw.arange(8))

    train(fw, mlp(fw, outputs=8), loss)


@of("a function without a derivative")
def straight_through(fw):
    def loss(model):
        y = model(fw.randn(8, 4))
        return ((y + (y.round() - y).detach()) - 1).square().mean()

    train(fw, mlp(fw), loss)


@of("a custom Function with a wrong backward")
def clipped_gradient(fw):
    class Half(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x / 2

        @staticmethod
        def backward(ctx, grad):
            return grad / 2

    train(fw, mlp(fw), lambda m: (Half.apply(m(fw.randn(8, 4))) - 1).square().mean())


@of("a parameter made anew in forward")
def lazily_made_once(fw):
    class Lazy(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = None

        def forward(self, x):
            if self.head is None:
                self.head = fw.nn.Linear(x.shape[1], 1)
            return self.head(x)

    model = Lazy()
    model(fw.randn(8, 4))
    train(fw, model, lambda m: (m(fw.randn(8, 4)) - 1).square().mean())


@of("two optimizers on one parameter")
def one_optimizer_after_the_other(fw):
    model = mlp(fw)

    def loss(model):
        return (model(fw.randn(8, 4)) - 1).square().mean()

    train(fw, model, loss, steps=3)
    train(fw, model, loss, steps=3, optimizer=fw.optim.SGD(model.parameters(), lr=0.01))


@pytest.mark.parametrize("cause", LOOKALIKES)
def test_nothing_is_said_of_what_looks_like(cause, fw):
    fw.manual_seed(0)
    with gi.Doctor() as doctor, warnings.catch_warnings(action="ignore"):
        LOOKALIKES[cause](fw)
    assert [symptom.text for symptom in doctor.diagnosis.symptoms] == []
