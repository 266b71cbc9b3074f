"""What is recorded is what happened, and nothing else changes."""

import os
import sqlite3
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.recording import RecordingError
from gradscope.inspect.recording.recorder.keep_policy import Policy
from tests.inspect.recording.programs import Witness, mlp, recorded, train


def test_parameters_are_bit_identical_with_the_recorder_on(tmp_path):
    plain = train(mlp(), 20)
    for keep in ("none", "summaries", "all"):
        with gi.record(tmp_path / "run.gscope", keep):
            watched = train(mlp(), 20)
        for a, b in zip(plain, watched):
            assert a.tobytes() == b.tobytes()


UNARY = st.sampled_from(["sin", "exp", "tanh", "relu", "neg", "abs"])


@settings(max_examples=25)
@given(st.lists(st.tuples(UNARY, st.booleans()), min_size=1, max_size=6), st.sampled_from([3, 5000]))
def test_recorded_gradients_are_those_that_an_observer_sees(tmp_path_factory, program, size):
    path = tmp_path_factory.mktemp("r") / "run.gscope"
    x = gs.tensor(numpy.linspace(-1, 1, size), requires_grad=True)
    witness = Witness()
    with gi.record(path, "all"), witness.adapter.observe(witness, forward=False, backward=True):
        y = x
        for name, join in program:
            y = getattr(gs, name)(y) + (y if join else 0.5)
        y.sum().backward()
    with gi.open_recording(path) as recording:
        (task,) = recording.tasks()
        assert [node.name for node in task.nodes] == [name for name, _, _ in witness.seen]
        for node, (_, incoming, produced) in zip(task.nodes, witness.seen):
            for which, group in (("grad_outputs", incoming), ("grad_inputs", produced)):
                assert len(getattr(node, which)) == len(group)
                for nr, array in enumerate(group):
                    value = recording.value(task.id, node.index, which, nr)
                    assert (value is None) == (array is None)
                    if array is not None:
                        assert value.tobytes() == array.tobytes()
                        assert getattr(node, which)[nr].norm == pytest.approx(
                            gi.summarize(array).norm, rel=3e-6, nan_ok=True
                        )


@settings(max_examples=25)
@given(st.lists(st.tuples(st.lists(UNARY, min_size=1, max_size=3), st.integers(1, 3)), min_size=1, max_size=6))
def test_backwards_of_many_kinds_are_told_apart(tmp_path_factory, programs):
    path = tmp_path_factory.mktemp("r") / "run.gscope"
    witness = Witness()
    with gi.record(path), witness.adapter.observe(witness, forward=False, backward=True):
        for names, size in programs:
            y = x = gs.tensor(numpy.linspace(-1, 1, size), requires_grad=True)
            for name in names:
                y = getattr(gs, name)(y) * y
            y.sum().backward()
            assert x.grad is not None
    with gi.open_recording(path) as recording:
        nodes = [node for task in recording.tasks() for node in task.nodes]
        assert len(recording.tasks()) == len(programs)
        assert [node.name for node in nodes] == [name for name, _, _ in witness.seen]
        for node, (_, incoming, produced) in zip(nodes, witness.seen):
            for told, arrays in ((node.grad_outputs, incoming), (node.grad_inputs, produced)):
                assert [each and each.shape for each in told] == [None if a is None else a.shape for a in arrays]
                for each, array in zip(told, arrays):
                    assert array is None or each.norm == pytest.approx(gi.summarize(array).norm, rel=3e-6)


@pytest.mark.parametrize("dtype", [gs.float16, gs.float32, gs.float64, gs.complex64, gs.complex128])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (8, 8), (65,), (200,), (5000,)])
def test_summaries_are_those_of_the_gradients_whatever_their_size_and_dtype(tmp_path, dtype, shape):
    rng = numpy.random.default_rng(0)
    x = gs.tensor(rng.standard_normal(shape), dtype=dtype, requires_grad=True)
    witness = Witness()
    with gi.record(tmp_path / "run.gscope"), witness.adapter.observe(witness, forward=False, backward=True):
        (-x + x).backward(gs.tensor(rng.standard_normal(shape), dtype=dtype))
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        (task,) = recording.tasks()
        for node, (_, incoming, produced) in zip(task.nodes, witness.seen):
            for told, arrays in ((node.grad_outputs, incoming), (node.grad_inputs, produced)):
                assert [(each.shape, each.dtype) for each in told] == [(a.shape, a.dtype.name) for a in arrays]
                for each, array in zip(told, arrays):
                    wanted = gi.summarize(array)
                    assert each.norm == pytest.approx(wanted.norm, rel=3e-6)
                    assert (each.zeros, each.nans, each.infs) == (wanted.zeros, wanted.nans, wanted.infs)
                    assert each.histogram == wanted.histogram


@pytest.mark.parametrize("values", [[numpy.inf, -numpy.inf], [numpy.nan, numpy.inf], [numpy.inf, 2.0, numpy.nan]])
def test_the_span_of_a_gradient_is_that_of_its_finite_elements(tmp_path, values):
    x = gs.zeros(len(values), requires_grad=True)
    with gi.record(tmp_path / "run.gscope"):
        (x * 1).backward(gs.tensor(values))
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        (told,) = recording.tasks()[0].nodes[0].grad_outputs
    wanted = gi.summarize(numpy.array(values, numpy.float32))
    assert (told.min, told.max, told.mean, told.std) == (wanted.min, wanted.max, wanted.mean, wanted.std)
    assert (told.nans, told.infs) == (wanted.nans, wanted.infs)


def test_all_that_has_run_is_in_the_file_while_a_node_hangs(tmp_path):
    hangs, goes_on = threading.Event(), threading.Event()

    class Hang(gs.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            hangs.set()
            assert goes_on.wait(60)
            return grad * 2

    y = Hang.apply(gs.ones(3, requires_grad=True)).exp().sum()
    with gi.record(tmp_path / "run.gscope") as recorder:
        thread = threading.Thread(target=y.backward)
        thread.start()
        assert hangs.wait(60)
        end = time.monotonic() + 30
        while recorder.nodes < 2 and time.monotonic() < end:
            time.sleep(0.01)
        with gi.open_recording(tmp_path / "run.gscope") as recording:
            (task,) = recording.tasks()
            assert ([node.name for node in task.nodes], task.state) == (["SumBackward0", "ExpBackward0"], "running")
        goes_on.set()
        thread.join()


def test_flush_in_the_middle_of_a_backward(tmp_path):
    x = gs.ones(3, requires_grad=True)
    y = x.exp()
    with gi.record(tmp_path / "run.gscope") as recorder:
        found = []

        def look(grad):
            recorder.flush()
            with gi.open_recording(tmp_path / "run.gscope") as recording:
                found.extend(node.name for node in recording.tasks()[0].nodes)

        y.register_hook(look)
        y.sin().sum().backward()
    assert found == ["SumBackward0", "SinBackward0"]
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        assert [node.name for node in recording.tasks()[0].nodes] == [*found, "ExpBackward0", "AccumulateGrad"]


def test_a_hook_that_writes_into_a_gradient_on_its_way_is_seen(tmp_path):
    x = gs.ones(5000, requires_grad=True)
    with gi.record(tmp_path / "run.gscope") as _:
        y = x * 2
        y.register_hook(lambda grad: grad.mul_(3))
        (y * 1).sum().backward()
    nodes = gi.open_recording(tmp_path / "run.gscope").tasks()[0].nodes
    sent, arrived = nodes[1].grad_inputs[0], nodes[2].grad_outputs[0]
    assert (sent.max, arrived.max) == (1.0, 3.0)


@settings(max_examples=20)
@given(st.permutations([0, 1, 2]), st.sampled_from([(8, 16, 64), (512, 16), (4, 5, 6)]), st.integers(0, 99))
def test_gradients_that_are_views_of_each_other_have_their_own_numbers(tmp_path_factory, axes, shape, seed):
    path = tmp_path_factory.mktemp("r") / "run.gscope"
    rng = numpy.random.default_rng(seed)
    x = gs.tensor(rng.standard_normal((8, 16, 64)), requires_grad=True)
    weight = gs.tensor(rng.standard_normal((8, 16, 64)))
    witness = Witness()
    with gi.record(path), witness.adapter.observe(witness, forward=False, backward=True):
        y = (x * 1.5).permute(*axes)
        y = y.reshape(*shape) if numpy.prod(shape) == x.numel() else y
        (y + y.detach()).reshape(8, 16, 64).mul(weight).sum().backward()
    with gi.open_recording(path) as recording:
        (task,) = recording.tasks()
        for node, (_, incoming, produced) in zip(task.nodes, witness.seen, strict=True):
            for told, arrays in ((node.grad_outputs, incoming), (node.grad_inputs, produced)):
                for summary, array in zip(told, arrays, strict=True):
                    wanted = gi.summarize(array) if array is not None else None
                    for fact in ("shape", "dtype", "zeros", "min", "max", "histogram", "preview"):
                        assert getattr(summary, fact, None) == getattr(wanted, fact, None)
                    if wanted is not None:
                        assert summary.norm == pytest.approx(wanted.norm, rel=3e-6)


def test_names_modules_parameters_and_lines(tmp_path):
    recording = recorded(tmp_path / "run.gscope", steps=1)
    nodes = recording.tasks()[0].nodes
    assert [(n.operator, n.parameter or n.module) for n in nodes] == [
        ("Mean", ""), ("Pow", ""), ("Addmm", "2"), ("AccumulateGrad", "2.weight"), ("AccumulateGrad", "2.bias"),
        ("Relu", "1"), ("Addmm", "0"), ("AccumulateGrad", "0.weight"), ("AccumulateGrad", "0.bias"),
    ]  # fmt: skip
    assert nodes[0].location.source == "loss = (model(inputs) ** 2).mean()"
    assert nodes[0].edges[0].target_key == nodes[1].key
    assert [(s.name, s.state) for s in nodes[1].saved] == [("self", "released")]


def test_equal_structure_is_stored_once(tmp_path):
    recorded(tmp_path / "one.gscope", steps=1).close()
    recorded(tmp_path / "ten.gscope", steps=10).close()

    def rows(name):
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            return [
                connection.execute(f"SELECT count(*) FROM {table}").fetchone()
                for table in ("nodes", "locations", "modules", "specs", "edges")
            ]

    assert rows("ten.gscope") == rows("one.gscope")


def test_iterations_follow_the_optimizer(tmp_path):
    recording = recorded(tmp_path / "run.gscope", steps=3)
    assert [i.number for i in recording.iterations()] == [1, 2, 3]
    assert [task.iteration for task in recording.tasks()] == [1, 2, 3]


def test_two_optimizers_share_an_iteration(tmp_path):
    one, two = mlp(), mlp(1)
    optimizers = [gs.optim.SGD(model.parameters(), lr=0.1) for model in (one, two)]
    with gi.record(tmp_path / "run.gscope"):
        for _ in range(4):
            for model, optimizer in zip((one, two), optimizers):
                model(gs.ones(1, 3)).sum().backward()
                optimizer.step()
    recording = gi.open_recording(tmp_path / "run.gscope")
    assert [task.iteration for task in recording.tasks()] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert [i.number for i in recording.iterations()] == [1, 2, 3, 4]
    assert all(i.ended >= i.started for i in recording.iterations())


def test_many_backwards_before_the_first_step_are_one_iteration(tmp_path):
    model = mlp()
    optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
    with gi.record(tmp_path / "run.gscope") as recorder:
        for steps in (6, 2):
            for _ in range(steps):
                model(gs.ones(1, 3)).sum().backward()
                recorder.flush()
            optimizer.step()
    recording = gi.open_recording(tmp_path / "run.gscope")
    assert [task.iteration for task in recording.tasks()] == [1] * 6 + [2] * 2
    assert [i.number for i in recording.iterations()] == [1, 2]


def test_iterations_by_hand_and_marks(tmp_path):
    x = gs.ones(2, requires_grad=True)
    with gi.record(tmp_path / "run.gscope") as recorder:
        for number, name in enumerate(("warm up", "real"), 1):
            assert recorder.iteration(name) == number
            (x * 2).sum().backward()
            (x * 3).sum().backward()
        recorder.mark("half way")
    recording = gi.open_recording(tmp_path / "run.gscope")
    assert [i.label for i in recording.iterations()] == ["warm up", "real"]
    assert [task.iteration for task in recording.tasks()] == [1, 1, 2, 2]
    assert [(e.kind, e.text, e.iteration) for e in recording.events()] == [("mark", "half way", 2)]


@pytest.mark.slow
def test_copies_of_large_gradients_do_not_pile_up(tmp_path):
    recorder = gi.recording.Recorder(tmp_path / "run.gscope", Policy.parse("all"), room=8 << 20)
    y = gs.ones(1 << 18, requires_grad=True)
    for _ in range(100):
        y = -y
    with recorder:
        tracemalloc.start()
        y.sum().backward()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert recorder.nodes == 102
    assert peak < 20 << 20


def test_values_of_selected_nodes_only(tmp_path):
    recording = recorded(tmp_path / "run.gscope", steps=1, keep="param:*.weight")
    task = recording.tasks()[0]
    kept = {node.parameter or node.name for node in task.nodes if recording.value(task.id, node.index) is not None}
    assert kept == {"0.weight", "2.weight"}


def test_nested_backward(tmp_path):
    class Inner(gs.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            w = gs.ones(1, requires_grad=True)
            with gs.enable_grad():
                (w * 3).sum().backward()
            return grad * w.grad

    x = gs.ones(3, requires_grad=True)
    with gi.record(tmp_path / "run.gscope"):
        Inner.apply(x).sum().backward()
    outer, inner = gi.open_recording(tmp_path / "run.gscope").tasks()
    assert (outer.parent, inner.parent, inner.iteration) == (None, outer.id, outer.iteration)
    assert [node.operator for node in inner.nodes] == ["Sum", "Mul", "AccumulateGrad"]
    assert [node.name for node in outer.nodes] == ["SumBackward0", "InnerBackward", "AccumulateGrad"]
    assert x.grad.tolist() == [3.0] * 3


def test_a_failure_is_recorded_and_raised(tmp_path):
    x = gs.ones(3, requires_grad=True)
    with gi.record(tmp_path / "run.gscope"):
        y = x.exp()
        z = y.sum()
        y += 1
        with pytest.raises(RuntimeError, match="modified by an inplace"):
            z.backward()
        (x * 2).sum().backward()
    recording = gi.open_recording(tmp_path / "run.gscope")
    failed, fine = recording.tasks()
    assert (failed.state, fine.state) == ("failed", "finished")
    assert failed.nodes[-1].state == "failed"
    (violation,) = recording.violations()
    assert (violation.operator, violation.saved_name, violation.node) == ("ExpBackward0", "result", 1)
    assert (violation.saved_version, violation.current_version) == (0, 1)
    assert recording.events()[0].kind == "error"


def test_threads(tmp_path):
    def work(number):
        x = gs.ones(number, requires_grad=True)
        for _ in range(20):
            (x * number).sum().backward()

    with gi.record(tmp_path / "run.gscope") as recorder:
        threads = [threading.Thread(target=work, args=(n,), name=f"worker {n}") for n in (2, 3, 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert recorder.nodes == 3 * 20 * 3
    tasks = gi.open_recording(tmp_path / "run.gscope").tasks()
    for number in (2, 3, 4):
        own = [task for task in tasks if task.thread == f"worker {number}"]
        assert len(own) == 20
        assert all(task.nodes[2].grad_outputs[0].norm == pytest.approx(number * number**0.5) for task in own)


def test_two_recorders_at_once(tmp_path):
    with gi.record(tmp_path / "a.gscope") as a, gi.record(tmp_path / "b.gscope", "none") as b:
        train(mlp(), 2)
    assert a.nodes == b.nodes == 18
    assert gi.open_recording(tmp_path / "a.gscope").tasks()[0].nodes[0].grad_outputs is not None
    assert gi.open_recording(tmp_path / "b.gscope").tasks()[0].nodes[0].grad_outputs is None


def test_one_file_takes_one_recorder(tmp_path):
    with gi.record(tmp_path / "a.gscope"):
        with pytest.raises(RecordingError, match="already"):
            gi.record(tmp_path / "a.gscope").start()


def test_start_stop_decorator_and_append(tmp_path):
    recorder = gi.record(tmp_path / "a.gscope", title="first").start()
    with pytest.raises(RecordingError, match="already"):
        recorder.start()
    train(mlp(), 1)
    recorder.stop()
    recorder.stop()
    with pytest.raises(RecordingError, match="not being recorded"):
        recorder.mark("late")

    @gi.record(tmp_path / "a.gscope", append=True, title="second")
    def work():
        train(mlp(), 2)
        return 7

    assert work() == 7
    recording = gi.open_recording(tmp_path / "a.gscope")
    assert [(run.title, len(recording.tasks(run=run.id))) for run in recording.runs] == [("first", 1), ("second", 2)]
    assert [node.index for node in recording.tasks(run=2)[1].nodes] == list(range(9))


def test_calls_inside_a_decorated_call_are_part_of_its_recording(tmp_path):
    @gi.record(tmp_path / "a.gscope")
    def work(depth):
        train(mlp(), 1)
        return depth and work(depth - 1)

    for _ in range(2):  # the second call replaces the first one's file, as without recursion
        assert work(2) == 0
        with gi.open_recording(tmp_path / "a.gscope") as recording:
            assert (len(recording.tasks()), recording.runs[0].state) == (3, "finished")


def test_a_decorated_function_in_two_threads_is_recorded_until_the_last_returns(tmp_path):
    inside, returned = threading.Barrier(2), threading.Event()
    recorder = gi.record(tmp_path / "a.gscope")

    @recorder
    def work(first):
        inside.wait(10)
        if not first:
            assert returned.wait(10)
        train(mlp(), 1)

    def first():
        work(True)
        returned.set()

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(first), pool.submit(work, False)]:
            done.result(10)
    assert not recorder.running
    with gi.open_recording(tmp_path / "a.gscope") as recording:
        assert [task.count for task in recording.tasks()] == [9, 9]


def test_a_decorated_call_in_a_running_recording_leaves_it_running(tmp_path):
    recorder = gi.record(tmp_path / "a.gscope")
    with recorder:
        recorder(train)(mlp(), 1)
        assert recorder.running
        train(mlp(), 1)
    assert recorder.nodes == 18


def test_a_recording_that_cannot_start_can_be_tried_again(tmp_path):
    recorder = gi.record(tmp_path / "new" / "a.gscope")
    work = recorder(lambda: train(mlp(), 1))
    with pytest.raises(RecordingError):
        work()
    (tmp_path / "new").mkdir()
    work()
    assert (recorder.nodes, recorder.running) == (9, False)


def test_a_finished_recording_is_one_file(tmp_path):
    recorded(tmp_path / "run.gscope").close()
    assert os.listdir(tmp_path) == ["run.gscope"]


def test_a_file_that_is_no_recording_is_not_replaced(tmp_path):
    path = tmp_path / "thesis.txt"
    path.write_text("three years of work" * 20)
    with pytest.raises(RecordingError, match="not a gradscope recording"):
        gi.record(path).start()
    assert path.read_text().startswith("three years")


@pytest.mark.parametrize("where", ["missing/run.gscope", "missing/{rank}.gscope"])
def test_a_place_that_cannot_be_written_is_refused_before_anything_runs(tmp_path, where):
    with pytest.raises(RecordingError, match=r"cannot be written|directory"):
        gi.record(tmp_path / where).start()


def test_a_full_disk_does_not_stop_the_program(tmp_path, capsys):
    plain = train(mlp(), 30)
    recorder = gi.recording.Recorder(
        tmp_path / "run.gscope", Policy.parse("all"), page_limit=30
    )  # fmt: skip
    with recorder:
        for _ in range(3):
            watched = train(mlp(), 30)
            recorder.flush()
    for a, b in zip(plain, watched):
        assert a.tobytes() == b.tobytes()
    error = capsys.readouterr().err
    assert error.count("recording has stopped") == 1
    assert "full" in error
    assert recorder.lost > 0
    assert "full" in recorder.failure
    recording = gi.open_recording(tmp_path / "run.gscope")
    assert sum(task.count for task in recording.tasks()) == recorder.nodes


def test_a_disk_that_turns_read_only_does_not_stop_the_program(tmp_path, capsys):
    plain = train(mlp(), 6)
    with gi.record(tmp_path / "run.gscope") as recorder:
        train(mlp(), 6)
        recorder.flush()
        kept = recorder.nodes
        # SQLite answers as where the file system has become read-only, which no user may make it.
        recorder._writer._file.connection.execute("PRAGMA query_only = 1")
        watched = train(mlp(), 6)
        recorder.flush()
    for a, b in zip(plain, watched):
        assert a.tobytes() == b.tobytes()
    assert capsys.readouterr().err.count("recording has stopped") == 1
    assert "readonly" in recorder.failure
    assert recorder.nodes == kept > 0
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        assert sum(task.count for task in recording.tasks()) == kept


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_child_writes_nothing(tmp_path):
    with gi.record(tmp_path / "run.gscope") as recorder:
        train(mlp(), 1)
        child = os.fork()
        if not child:
            status = 1
            try:
                train(mlp(), 5)
                recorder.stop()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        train(mlp(), 1)
    assert recorder.nodes == 18
    assert len(gi.open_recording(tmp_path / "run.gscope").tasks()) == 2


def test_importing_loads_nothing_heavy():
    import subprocess

    code = "import sys, gradscope.inspect as gi; gi.record, gi.open_recording; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"rich", "networkx", "pyarrow", "torch", "textual"} & set(loaded)


def test_names_that_are_no_text_are_recorded_all_the_same(tmp_path):
    x = gs.ones(2, requires_grad=True)
    with gi.record(tmp_path / "run.gscope", title="\udcff\x00.py") as recorder:
        model = gs.nn.Sequential()
        model.add_module("\udcff\x1b[2J\n", gs.nn.Linear(2, 2))
        model(x).sum().backward()
        recorder.mark("\ud800 bytes")
    assert (recorder.failure, recorder.lost) == ("", 0)
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        assert recording.runs[0].title == "?\\x00.py"
        assert "?\\x1b[2J\\n" in {node.module for node in recording.tasks()[0].nodes}
        assert recording.events()[0].text == "? bytes"


@pytest.mark.parametrize("value", [0.5, float("nan"), float("-inf")])
def test_the_loss_of_a_backward_is_kept(tmp_path, value):
    w = gs.ones(1, requires_grad=True)
    with gi.record(tmp_path / "run.gscope"):
        loss = (w * value).sum()
        loss.backward()
        (w * 2).sum().backward()
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        named, unnamed = recording.tasks()
        assert numpy.array_equal(named.loss, value, equal_nan=True)
        assert unnamed.loss is None


def test_a_recording_without_summaries_keeps_no_loss(tmp_path):
    w = gs.ones(1, requires_grad=True)
    with gi.record(tmp_path / "run.gscope", "none"):
        loss = (w * 2).sum()
        loss.backward()
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        assert recording.tasks()[0].loss is None
