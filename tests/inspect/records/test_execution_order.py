"""The predicted order is the engine's."""

import random

import gradscope as gs
from gradscope.inspect.adapters import NativeAdapter
from gradscope.inspect.records.execution_order import engine_order, walk
from gradscope.runtime import events

OPERATORS = [
    lambda a, b: a * b,
    lambda a, b: a + b,
    lambda a, b: a.tanh(),
    lambda a, b: a[1:].sum() * b,
]


def random_program(seed):
    """Return losses of a random graph: shared values, several roots, leaves used often."""
    rng = random.Random(seed)
    values = [gs.ones(3, requires_grad=True) for _ in range(3)]
    for _ in range(rng.randint(1, 25)):
        values.append(rng.choice(OPERATORS)(rng.choice(values), rng.choice(values)))
    made = [v for v in values if v.grad_fn is not None]
    return [v.sum() for v in rng.sample(made, min(len(made), rng.randint(1, 3)))]


def test_random_graphs_run_in_the_predicted_order():
    adapter = NativeAdapter()
    for seed in range(60):
        losses = random_program(seed)
        roots = [adapter.root(loss)[0] for loss in losses]
        links = walk(adapter, roots)
        sequence = {key: link.sequence_nr for key, link in links.items()}
        targets = {key: [c for c, _ in link.edges if c is not None] for key, link in links.items()}
        predicted = engine_order([adapter.key(r) for r in roots], sequence, targets)
        del links
        ran = []
        with events.subscribe(lambda event, ran=ran: ran.append(adapter.key(event.node)), events.NodeEntered):
            gs.autograd.backward(losses)
        assert ran == predicted, f"seed {seed}"


def test_a_long_chain_needs_no_recursion():
    x = y = gs.ones((), requires_grad=True)
    for _ in range(20_000):
        y = y * 1.0
    adapter = NativeAdapter()
    links = walk(adapter, [adapter.root(y)[0]])
    assert len(links) == 20_001
    assert x.is_leaf
