"""Graphs of many nodes in a row are freed, on a stack of ordinary size."""

import subprocess
import sys
import time
import weakref

import pytest

from gradscope.inspect.adapters.protocol import Observer

torch = pytest.importorskip("torch")
resource = pytest.importorskip("resource")

from gradscope.inspect.adapters.torch import TorchAdapter, graph_freeing  # noqa: E402

pytestmark = pytest.mark.torch

DEEP = """
import torch
import gradscope.inspect as gi
from gradscope.inspect.adapters import adapter_for
from gradscope.inspect.adapters.protocol import Observer

def row(count):
    y = torch.ones(1, requires_grad=True)
    for _ in range(count):
        y = y + 1
    return y

y = row(60_000)
assert len(gi.graph(y)) == 60_001
del y
y = row(60_000)
with adapter_for(y).observe(Observer(), forward=False, backward=True):
    y.backward()
del y
print("freed")
left = row(60_000)  # for the interpreter to free
assert len(gi.graph(left)) == 60_001
"""


@pytest.mark.slow
def test_a_row_of_sixty_thousand_nodes():
    def ordinary_stack():
        resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))

    done = subprocess.run(
        [sys.executable, "-c", DEEP],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=ordinary_stack,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "freed\n", "")


class Kept:
    """Something that a node keeps."""


def test_what_is_cut_off_is_freed_soon(monkeypatch):
    monkeypatch.setattr(graph_freeing, "_gap", lambda: 0.0)
    monkeypatch.setattr(graph_freeing, "_left", 0)
    adapter = TorchAdapter()

    class Held(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.kept = Kept()
            gone.append(weakref.ref(ctx.kept))
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    gone = []
    with adapter.observe(Observer(), forward=True, backward=True):
        y = torch.ones(1, requires_grad=True)
        for _ in range(50):
            y = Held.apply(y)
        y.backward()
    del y
    deadline = time.monotonic() + 10
    while any(reference() is not None for reference in gone) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert [reference() for reference in gone] == [None] * 50
