"""An instrument never changes the numbers: parameters after training are bit for bit what they are without it."""

import importlib
import importlib.util

import numpy as np
import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.check import CODES, Sanitizer, Silences
from gradscope.check.suppression.code_selection import CodeSelection
from gradscope.inspect import Debugger
from gradscope.inspect.adapters import adapter_for
from tests.inspect.adapters.watching import Nosy
from tests.inspect.sessions import wait

STEPS = 20


def _frameworks():
    try:
        import torch
    except ImportError:
        return [pytest.param(gs, id="gradscope")]
    return [pytest.param(gs, id="gradscope"), pytest.param(torch, id="torch", marks=pytest.mark.torch)]


def _inputs(lib, *shape):
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return lib.tensor(values)


def mlp(lib):
    """Dropout under a fixed seed, and Adam."""
    nn = lib.nn
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))
    x = _inputs(lib, 6, 4)
    return model, lambda: (model(x) ** 2).mean(), lib.optim.Adam(model.parameters(), lr=0.01)


def in_place(lib):
    """Writes in place, into views and bases."""
    nn = lib.nn
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 4))
    x = _inputs(lib, 6, 4)

    def loss():
        y = model[0](x).tanh() * 1.0
        y[:, :2] *= 2.0
        y.add_(0.5)
        z = model[1](y * 1.0)
        z += x
        return (z * z).sum()

    return model, loss, lib.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)


def checkpointed(lib, *, reentrant=False):
    """A region recomputed in backward, with dropout inside."""
    nn = lib.nn
    inner = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 4))
    model = nn.Sequential(nn.Linear(4, 4), inner, nn.Linear(4, 1))
    x = _inputs(lib, 6, 4)
    checkpoint = importlib.import_module(f"{lib.__name__}.utils.checkpoint").checkpoint

    def loss():
        return model[2](checkpoint(inner, model[0](x), use_reentrant=reentrant)).square().mean()

    return model, loss, lib.optim.SGD(model.parameters(), lr=0.05)


def checkpointed_reentrant(lib):
    """A region differentiated in a nested backward."""
    return checkpointed(lib, reentrant=True)


def lstm(lib):
    """A recurrent network."""
    model = lib.nn.LSTM(3, 5, num_layers=2)
    x = _inputs(lib, 7, 2, 3)
    return model, lambda: (model(x)[0] ** 2).sum(), lib.optim.Adam(model.parameters(), lr=0.01)


def transformer(lib):
    """Attention, and dropout in several places."""
    model = lib.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.2)
    x = _inputs(lib, 5, 2, 4)
    return model, lambda: (model(x) ** 2).sum(), lib.optim.Adam(model.parameters(), lr=0.01)


def sparse_embedding(lib):
    """Sparse gradients, which in gradscope are dense."""
    model = lib.nn.Embedding(10, 3, sparse=True)
    rows = lib.tensor([1, 3, 3, 7])
    return model, lambda: (model(rows) ** 2).sum(), lib.optim.SGD(model.parameters(), lr=0.05)


PROGRAMS = [mlp, in_place, checkpointed, checkpointed_reentrant, lstm, transformer, sparse_embedding]


def _train(lib, program):
    """Train; return the bytes of the parameters."""
    lib.manual_seed(0)
    model, loss, optimizer = program(lib)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    return {name: p.detach().numpy().tobytes() for name, p in model.named_parameters()}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("lib", _frameworks())
def test_an_observer_that_asks_everything(lib, program):
    plain = _train(lib, program)
    adapter = adapter_for(lib.ones(1))
    nosy = Nosy(adapter)
    with adapter.observe(nosy, forward=True, backward=True, operators=True, writes=True):
        watched = _train(lib, program)
    assert nosy.asked > STEPS
    assert watched == plain


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("lib", _frameworks())
def test_the_debugger_stepping_looking_and_running_free(lib, program):
    plain, watched = _train(lib, program), {}
    session = Debugger.for_call(lambda: watched.update(_train(lib, program)))
    session.add_breakpoint("* if norm > 1e9")
    session.add_breakpoint("nan")
    session.start()
    for verb in (session.step, session.into, session.step, session.out, session.next_backward):
        wait(session)
        session.inspect(session.current)
        session.evaluate("grad * 2")
        if verb == session.out and not session.node.module:
            continue
        verb()
    wait(session)
    for point in session.breakpoints:
        session.remove_breakpoint(point.id)
    session.cont()
    assert wait(session) == "finished", session.traceback
    assert watched == plain


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("lib", _frameworks())
def test_tracking_and_modelling_every_graph(lib, program):
    plain = _train(lib, program)

    def modelled(library):
        model, loss, optimizer = program(library)

        def looked_at():
            value = loss()
            assert len(gi.graph(value, params=model)) > 1
            return value

        return model, looked_at, optimizer

    with gi.track():
        assert _train(lib, modelled) == plain


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("lib", _frameworks())
def test_the_sanitizer_with_all_that_it_looks_for(lib, program):
    plain = _train(lib, program)
    with Sanitizer(Silences(CodeSelection(["GS", *CODES]))) as sanitizer:
        watched = _train(lib, program)
    assert sanitizer.findings == []
    assert watched == plain


@pytest.mark.torch
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_suspicion_without_listening(program):
    torch = pytest.importorskip("torch")
    # It imports PyTorch.
    from gradscope.inspect.adapters.torch.writes.suspicious_writes import suspect_writes

    plain, seen = _train(torch, program), []
    end = suspect_writes(lambda: seen.append("a suspicion"))
    try:
        watched = _train(torch, program)
    finally:
        end()
    assert watched == plain
    assert seen == []
