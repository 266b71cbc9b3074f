"""Tensors that outlive the code that made them, and what keeps them."""

import gc
import json

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.diagnosis.memory.reference_paths import Roots, cycle_of, link
from tests.inspect.diagnosis.lines import line

STORE = None


def test_nothing(fw):
    def work():
        w = fw.ones(3, requires_grad=True)
        (w * w).sum().backward()

    with gi.leaks() as watch:
        work()
    assert not watch.result
    assert str(watch.result) == "Every tensor that was made is gone."


def test_a_global(fw):
    global STORE
    STORE = []
    with gi.leaks() as watch:
        STORE.append(fw.ones(5) * 2)  # HERE: stored
    (leak,) = watch.result.kept
    STORE = None
    assert (leak.kind, leak.shape, leak.nbytes) == ("variable", (5,), 20)
    assert leak.path == f"`STORE[0]` (module {__name__})"
    assert leak.made.lineno == line(__file__, "stored")


def test_a_hook_that_refers_to_its_tensor(fw):
    def work():
        y = fw.ones(4, requires_grad=True) * 3
        y.register_hook(lambda grad: y * grad)

    with gi.leaks() as watch:
        work()
    (leak,) = watch.result.cycles
    assert "function test_a_hook_that_refers_to_its_tensor.<locals>.work.<locals>.<lambda>" in leak.path
    assert "save_for_backward()" in str(watch.result)
    gc.collect()


def test_a_ctx_that_refers_to_its_output(fw):
    class Double(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.y = x * 2
            return ctx.y

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    with gi.leaks() as watch:
        Double.apply(fw.ones(7, requires_grad=True))
    assert any("DoubleBackward" in leak.path for leak in watch.result.cycles)
    gc.collect()


def test_many_of_a_kind_are_one_line(fw):
    kept = []
    with gi.leaks() as watch:
        for _ in range(6):
            kept.append(fw.ones(5) * 2)
    (leak,) = watch.result.kept
    assert (leak.count, watch.result.total) == (6, 120)
    assert str(leak).startswith("6 x float32 (5)")
    assert json.loads(watch.result.to_json())["kept"][0]["count"] == 6
    assert watch.result.table().row_count == 1


def test_the_largest_are_looked_into():
    kept = []
    with gi.leaks() as watch:
        for size in range(1, 61):
            kept.append(gs.ones(size))
    assert (watch.result.unexplained, max(leak.nbytes for leak in watch.result.kept)) == (10, 240)
    assert "and 10 more tensors, none larger, not looked into" in str(watch.result)


def test_what_the_time_did_not_suffice_for_is_not_said_to_be_hidden(monkeypatch):
    monkeypatch.setattr("gradscope.inspect.diagnosis.memory.tensor_leaks.Roots", lambda: Roots(seconds=0.0))
    kept = {"far": {"away": []}}
    with gi.leaks() as watch:
        kept["far"]["away"] += [gs.ones(2), gs.ones(3)]
    assert (bool(watch.result), watch.result.kept, watch.result.unexplained) == (True, (), 2)
    assert str(watch.result) == "2 tensors still alive; what keeps them was not found in 10 s."


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_as_before(fw, enabled):
    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with gi.leaks():
            assert not gc.isenabled()
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was else gc.disable)()


def test_links_and_cycles():
    class Thing:
        pass

    a, b = Thing(), Thing()
    a.other, b.others = b, [a]
    assert (link(a, b), link(b.others, a), link({"x": a}, a)) == (".other", "[0]", "['x']")
    assert cycle_of(a).startswith("Thing -> ")
    assert cycle_of(a).endswith(" -> Thing")
    assert cycle_of(["free"]) == ""


def test_a_tensor_that_another_thread_has_only_begun_to_make():
    with gi.leaks() as watch:
        half = object.__new__(gs.Tensor)
    assert not watch.result
    del half
