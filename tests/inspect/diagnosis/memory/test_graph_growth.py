"""Graphs that grow over iterations: who keeps them, and on which line."""

import gc
import json

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.diagnosis.memory.reference_paths import Roots
from tests.inspect.diagnosis.lines import line


def weight(fw):
    return fw.ones(3, requires_grad=True)


def test_steady(fw):
    w = weight(fw)
    with gi.growth() as watch:
        for _ in range(6):
            (w * w).sum().backward()
    found = watch.result
    assert (found.kind, bool(found), found.keepers) == ("steady", False, ())
    assert [(s.number, s.graph, s.alive) for s in found.samples] == [(i, 2, 2) for i in range(1, 7)]
    assert "Steady over 6 backward passes" in str(found)


def test_a_loss_kept_in_a_list(fw):
    w, losses = weight(fw), []
    with gi.growth() as watch:
        for _ in range(6):
            loss = (w * w).sum()  # HERE: kept loss
            loss.backward()
            losses.append(loss)  # HERE: append
    found = watch.result
    assert (found.kind, found.per_iteration) == ("kept graphs", 2)
    (keeper,) = found.keepers
    assert (keeper.name, keeper.made.lineno) == ("losses", line(__file__, "kept loss"))
    assert keeper.grows.lineno == line(__file__, "append")
    assert keeper.path == "losses[...]"
    assert "loss.item()" in str(found)


def test_a_running_total(fw):
    w, total = weight(fw), 0
    with gi.growth() as watch:
        for _ in range(6):
            loss = (w * w).sum()
            loss.backward()
            total += loss  # HERE: total
    found = watch.result
    assert found.kind == "kept graphs"
    assert [(k.name, k.grows.lineno) for k in found.keepers] == [("total", line(__file__, "total"))]


def test_a_loss_kept_by_an_object(fw):
    class Meter:
        def __init__(self):
            self.values = []

        def update(self, value):
            self.values.append(value)  # HERE: meter

    w, meter = weight(fw), Meter()
    with gi.growth() as watch:
        for _ in range(6):
            loss = (w * w).sum()
            loss.backward()
            meter.update(loss)
    (keeper,) = watch.result.keepers
    assert (keeper.path, keeper.grows.lineno) == ("meter.values[...]", line(__file__, "meter"))


def test_a_running_statistic_that_a_module_keeps(fw):
    """Told of as the program would write it, and before what the graph itself has saved."""

    class Scaled(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = fw.nn.Linear(4, 4)
            self.register_buffer("running", fw.ones(()))

        def forward(self, x):
            hidden = self.linear(x)
            self.running = 0.9 * self.running + 0.1 * hidden.abs().max()  # HERE: running
            return hidden / self.running.detach()

    model = fw.nn.Sequential(fw.nn.Linear(4, 4), Scaled())
    with gi.growth() as watch:
        for _ in range(6):
            loss = (model(fw.ones(8, 4)) ** 2).mean()
            loss.backward()
    assert watch.result.kind == "kept graphs"
    assert [(k.path, k.made.lineno) for k in watch.result.keepers] == [("model[1].running", line(__file__, "running"))]


@pytest.mark.parametrize("every", [1, 2, 3])
def test_cycles_that_the_collector_takes_now_and_then(fw, every):
    w, before = weight(fw), len(gc.callbacks)
    with gi.growth() as watch:
        for step in range(8):
            loss = (w * w).sum()
            ring = [loss]
            ring.append(ring)
            loss.backward()
            del loss, ring
            if step % every == 0:
                gc.collect()
    assert (watch.result.kind, watch.result.per_iteration) == ("kept graphs", 2)
    del watch
    assert len(gc.callbacks) == before


def test_what_the_collector_finds_besides_is_no_growth(fw):
    w = weight(fw)
    with gi.growth() as watch:
        for _ in range(8):
            ring = []
            ring.append(ring)
            (w * w).sum().backward()
            del ring
            gc.collect()
    assert watch.result.kind == "steady"


def test_numbers_are_no_growth(fw):
    w, losses = weight(fw), []
    with gi.growth() as watch:
        for _ in range(6):
            loss = (w * w).sum()
            loss.backward()
            losses.append(loss.item())
    assert not watch.result


def test_a_carried_state(fw):
    w, hidden = weight(fw), fw.zeros(3)
    with gi.growth() as watch:
        for _ in range(6):
            hidden = (hidden + w).tanh()  # HERE: joint
            hidden.sum().backward(retain_graph=True)
    found = watch.result
    assert (found.kind, found.per_iteration) == ("longer graphs", 2)
    assert found.joint.lineno == line(__file__, "joint")
    assert [s.graph for s in found.samples] == [3, 5, 7, 9, 11, 13]
    assert found.samples[-1].nbytes > found.samples[0].nbytes


def test_two_backwards_an_iteration(fw):
    w = weight(fw)
    with gi.growth() as watch:
        for _ in range(6):
            (w * w).sum().backward()
            (w.exp() * w * w).sum().backward()
    assert not watch.result


def test_two_backwards_an_iteration_do_not_make_the_last_loss_a_keeper(fw):
    w, kept = weight(fw), []
    with gi.growth() as watch:
        for _ in range(6):
            first, second = (w * w).sum(), (w.exp() * w).sum()
            first.backward()
            second.backward()
            kept.append(first)  # HERE: first
    assert [(k.path, k.grows.lineno) for k in watch.result.keepers] == [("kept[...]", line(__file__, "first"))]


def test_without_backward(fw):
    w, total = weight(fw), 0
    with gi.growth() as watch:
        for _ in range(6):
            total = total + (w * w).sum()
            watch.mark()
    assert watch.result.kind == "kept graphs"
    assert str(gi.growth().result).startswith("No backward pass was seen")


def test_forms(fw):
    w = weight(fw)
    with gi.growth() as watch:
        (w * w).sum().backward()
    assert json.loads(watch.result.to_json())["samples"][0]["graph"] == 2
    assert watch.result.table().row_count == 1


def test_nothing_is_left_behind(fw):
    with gi.growth() as watch:
        pass
    with pytest.raises(AttributeError):
        watch.result.kind = "x"


def test_a_tensor_that_another_thread_has_only_begun_to_make():
    w, losses = weight(gs), []
    half = object.__new__(gs.Tensor)
    with gi.growth() as watch:
        for _ in range(6):
            losses.append((w * w).sum())
            losses[-1].backward()
    assert [keeper.name for keeper in watch.result.keepers] == ["losses"]
    del half


def test_a_search_that_takes_too_long_is_ended_and_the_report_says_so(fw, monkeypatch):
    searches = []

    def without_time():
        searches.append(Roots(seconds=0.0))
        return searches[-1]

    monkeypatch.setattr("gradscope.inspect.diagnosis.memory.graph_growth.Roots", without_time)
    w, kept = weight(fw), {"far": {"away": []}}
    with gi.growth() as watch:
        for _ in range(8):
            loss = (w * w).sum()
            loss.backward()
            kept["far"]["away"].append(loss)
            del loss
    found = watch.result
    assert (found.kind, found.keepers, found.cut, len(searches)) == ("kept graphs", (), True, 1)
    assert "Which variable keeps them was not found in 10 s of looking through all objects." in str(found)


def test_a_graph_kept_now_and_then_is_no_growth(fw):
    w, kept = weight(fw), []
    with gi.growth() as watch:
        for number in range(7):
            loss = (w * w).sum()
            loss.backward()
            kept[:] = [loss] if number % 2 else []
    assert watch.result.kind == "steady"


def test_nodes_alive_are_counted_one_by_one(fw):
    x, kept = fw.ones(2, requires_grad=True), []
    with gi.growth() as watch:
        for number in range(5):
            y = x.sin()
            for _ in range(number):
                y = y.cos()
            kept.append(y)
            watch.mark()
            if number == 3:
                del kept[:2]
    # Sines and cosines: 1, 2, 3 and 4 in the first four iterations, of which 1 and 2 go; 5 in the last.
    assert [sample.alive for sample in watch.result.samples] == [1, 3, 6, 10, 12]


def test_what_is_saved_is_counted_as_when_each_saved_tensor_is_asked(monkeypatch):
    def sizes():
        x, w = gs.ones(3, 4, requires_grad=True), gs.ones(4, 3, requires_grad=True)
        with gi.growth() as watch:
            ((x.t() * w).exp() @ x * 2).pow(2).sum().backward()
        return [sample.nbytes for sample in watch.result.samples]

    quick = sizes()
    monkeypatch.setattr(gi.adapters.NativeAdapter, "saved_bytes", lambda self, nodes: None)
    assert sizes() == quick != [0]
