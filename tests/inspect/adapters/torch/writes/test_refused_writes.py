"""Writes in place that are refused: both frameworks tell of them, with the same facts."""

import pytest

import gradscope as gs
from gradscope.inspect.adapters import Observer, adapter_for


class Refusals(Observer):
    """Keeps the errors."""

    def __init__(self):
        self.errors = []

    def write_refused(self, error):
        self.errors.append(error)


def view_under_no_grad(lib):
    base = lib.ones(2, 2, requires_grad=True) * 1
    with lib.no_grad():
        view = base.view(4)
    view.mul_(2)


def stale_view(lib):
    base = lib.ones(4, requires_grad=True) * 1
    parts = base.split(2)
    base.add_(1)
    return lib.ones(2) + parts[0]


REFUSED = [
    ("leaf", (3,), "", lambda lib: lib.ones(3, requires_grad=True).add_(1)),
    ("view of leaf", (3,), None, lambda lib: lib.ones(3, requires_grad=True)[:].add_(1)),
    ("multi", (3,), "Unbind", lambda lib: (lib.ones(2, 3, requires_grad=True) * 1).unbind()[1].add_(1)),
    ("multi", (2,), "Split", stale_view),
    ("no_grad", (4,), None, view_under_no_grad),
]


@pytest.mark.parametrize(("reason", "shape", "operator", "write"), REFUSED, ids=[f"{r[0]} {r[1]}" for r in REFUSED])
@pytest.mark.parametrize("framework", ["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_refused_write_is_told_with_its_reason(framework, reason, shape, operator, write):
    lib = gs if framework == "gradscope" else pytest.importorskip("torch")
    observer = Refusals()
    with adapter_for(lib.ones(1)).observe(observer, forward=False, backward=False, writes=True):
        with pytest.raises(RuntimeError) as caught:
            write(lib)
    (error,) = observer.errors
    assert error is caught.value
    assert (error.reason, tuple(error.shape)) == (reason, shape)
    assert operator is None or error.view_operator == operator


@pytest.mark.torch
def test_other_errors_are_not_told():
    torch = pytest.importorskip("torch")
    observer = Refusals()
    with adapter_for(torch.ones(1)).observe(observer, forward=False, backward=False, writes=True):
        with pytest.raises(RuntimeError, match="must match the size"):
            torch.ones(3) + torch.ones(4)
    assert observer.errors == []
