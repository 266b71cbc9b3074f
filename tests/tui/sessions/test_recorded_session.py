from __future__ import annotations

import sqlite3

import numpy
import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect import TensorSubject
from gradscope.inspect.debugging.session.session_errors import SessionError
from gradscope.inspect.recording.file.node_pages import NODE, Page
from gradscope.inspect.recording.recorder.gradient_statistics import TENSOR
from gradscope.inspect.records.node_records import norms_by_place
from gradscope_tui.actions import unavailable
from gradscope_tui.panes.log_pane import LogPane
from gradscope_tui.sessions import recorded_nodes
from gradscope_tui.sessions.recorded_nodes import RecordedNodes
from gradscope_tui.sessions.recorded_session import RecordedSession
from gradscope_tui.sessions.session_protocol import known_norms
from gradscope_tui.widgets.status_bar import StatusBar
from tests.tui.fake import play, text_of, type_in, until


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Three iterations of one backward of three nodes; the last has a NaN."""
    path = tmp_path_factory.mktemp("recorded") / "run.gscope"
    w = gs.tensor([1.0, 2.0], requires_grad=True)
    optimizer = gs.optim.SGD([w], lr=0.1)
    with gi.record(path, keep="all"):
        for step in range(3):
            ((w * w) * (float("nan") if step == 2 else 1.0)).sum().backward()
            optimizer.step()
    return path


@pytest.fixture
def session(path):
    with gi.open_recording(path) as recording:
        session = RecordedSession(recording)
        session.start()
        yield session


def test_steps_go_from_backward_to_backward_and_back(session):
    count = len(session.nodes)
    session.step(count)
    assert (session.task_index, session.current) == (2, 0)
    session.back()
    assert (session.task_index, session.current) == (1, count - 1)
    session.next_backward()
    session.next_iteration()
    assert (session.task_index, session.current) == (3, 0)
    session.previous_iteration()
    session.previous_backward()
    assert (session.task_index, session.current) == (1, 0)


def test_tensors_are_looked_into_and_compared_with_another_backward(session, tmp_path):
    mul = next(node.index for node in session.nodes if node.operator == "Mul" and node.index > 1)
    subject = TensorSubject(f"at_node({mul}).produced[0]", f"at_node({mul}, backward=2).produced[0]")
    assert session.tensor_page(TensorSubject(subject.expression), ((0, 2),)).values == (1.0, 2.0)
    assert session.tensor_page(subject, (1,)).values == pytest.approx((0.4,))
    assert session.tensor_summary(subject).numel == 2
    assert session.find_element(subject, "largest") == 1
    path = session.save_tensor(subject, str(tmp_path / "difference"))
    assert numpy.load(path).tolist() == pytest.approx([0.2, 0.4])
    with pytest.raises(TypeError, match="is a SavedRecord, and no tensor"):
        session.tensor_page(TensorSubject(f"at_node({mul}).saved['self']"), (0,))
    with pytest.raises(ValueError, match="no backward 9 in this recording: it has 3"):
        session.tensor_summary(TensorSubject("at_node(0, backward=9).grad"))
    with pytest.raises(ValueError, match="there is no node 99 in backward 3"):
        session.tensor_summary(TensorSubject("at_node(99, backward=3).grad"))


def test_a_nan_is_explained_as_far_as_it_is_recorded(session, tmp_path):
    assert session.explain() == ""
    session.next_iteration()
    session.next_iteration()
    found = {node.operator: (session.goto(node.index), session.explain())[1] for node in session.nodes}
    assert found["Sum"] == ""
    assert found["Mul"].startswith("MulBackward0 passes on")
    with gi.record(tmp_path / "less.gscope", keep="summaries"):
        (gs.zeros(2, requires_grad=True).sqrt() * 0.0).sum().backward()
    with gi.open_recording(tmp_path / "less.gscope") as recording:
        bare = RecordedSession(recording)
        bare.start()
        bare.goto(2)
        assert "was not kept; record with --keep all" in bare.explain()


def test_who_has_made_a_nan_is_left_open_where_what_the_node_saved_is_not_known(tmp_path):
    with gi.record(tmp_path / "run.gscope", keep="all"):
        (gs.zeros(2, requires_grad=True).sqrt() * 0.0).sum().backward()
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        session = RecordedSession(recording)
        session.start()
        session.cont()
        head, reason, *_ = session.explain().splitlines()
        assert head.startswith("NaN comes out of SqrtBackward0 at ")
        assert reason.endswith("what the node saved was not kept, and may have been not finite")


def test_both_ends_are_said(session):
    with pytest.raises(SessionError, match="beginning"):
        session.back()
    with pytest.raises(SessionError, match="first backward"):
        session.previous_backward()
    with pytest.raises(SessionError, match="first iteration"):
        session.previous_iteration()
    session.catch("nan", False)
    session.cont()
    assert session.reason.text.startswith("the last node that was recorded")
    with pytest.raises(SessionError, match="end of the recording"):
        session.step()
    with pytest.raises(SessionError, match="last backward"):
        session.next_backward()


def test_breakpoints_stop_forwards_and_back(session):
    session.catch("nan", False)
    session.add_breakpoint("AccumulateGrad")
    for task in (1, 2, 3):
        session.cont()
        assert (session.task_index, session.nodes[session.current].name) == (task, "AccumulateGrad")
    session.reverse_continue()
    assert session.task_index == 2
    session.until("op:Sum")
    assert (session.task_index, session.current) == (3, 0)


def test_a_nan_is_found(session):
    session.cont()
    assert session.task_index == 3
    assert session.reason.kind == "nan"
    assert session.reason.text.startswith("MulBackward0 produced a NaN from gradients without one")
    session.cont()
    assert session.reason.text.startswith("the last node that was recorded")
    session.reverse_continue()
    assert session.reason.kind == "nan"
    session.catch("nan", False)
    session.reverse_continue()
    assert (session.task_index, session.current) == (1, 0)


def test_a_nan_that_enters_a_backward_stops_where_it_does(tmp_path):
    w = gs.ones(600, requires_grad=True)
    with gi.record(tmp_path / "run.gscope"):
        for seed in (1.0, float("nan")):
            x = w
            for _ in range(300):
                x = x * 1.0 + 0.0
            x.sum().backward(gs.tensor(seed))
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        session = RecordedSession(recording)
        session.start()
        session.cont()
        assert (session.task_index, session.current, session.reason.kind) == (2, 0, "nan")
        assert session.reason.text.startswith("a NaN enters this backward")
        session.cont()
        assert session.current == len(session.nodes) - 1


def test_conditions_and_watches_know_the_values_that_were_kept(session):
    session.add_breakpoint("AccumulateGrad if grad[1] > 2")
    watch = session.add_watch("norm")
    session.cont()
    assert session.nodes[session.current].name == "AccumulateGrad"
    assert session.evaluate_text("grad.tolist()") == "[2.0, 4.0]"
    assert session.evaluate("iteration, backward") == (session._tasks[0].iteration, session._tasks[0].id)
    assert session.watches[0].id == watch.id
    assert session.watches[0].changed


@pytest.mark.parametrize("verb", ["edit", "skip", "what_if", "pause", "threads", "live"])
def test_what_needs_a_program_is_refused_with_the_reason(session, verb):
    assert "there is no program" in session.unavailable[verb]
    calls = {
        "edit": lambda: session.set_grad(0, 0),
        "skip": session.skip,
        "what_if": lambda: session.what_if(0, 0),
        "pause": session.pause,
        "threads": lambda: session.follow_thread(1),
        "live": session.go_live,
    }
    with pytest.raises(SessionError, match="there is no program"):
        calls[verb]()


def test_a_recording_that_grows_is_read_again(tmp_path):
    path = tmp_path / "run.gscope"
    w = gs.tensor([1.0, 2.0], requires_grad=True)
    with gi.record(path) as recorder:
        (w * w).sum().backward()
        recorder.flush()
        with gi.open_recording(path) as recording:
            session = RecordedSession(recording)
            session.start()
            before = len(recording.tasks())
            (w * w).sum().backward()
            recorder.flush()
            session.restart()
            assert len(recording.tasks()) == before + 1
            assert "1 more backward read" in session.reason.text


def test_the_widgets_show_a_recording_as_the_past_of_a_program(session):
    async def scenario(app, pilot):
        await until(pilot, lambda: "◁ REPLAYING #0" in text_of(app))
        assert {"edit", "skip", "what_if", "live"} <= unavailable(app.session)
        assert "┄" not in text_of(app)  # on the timeline: all of it has run
        await pilot.press("n", "n")
        await until(pilot, lambda: app.query_one(StatusBar).status.node == 2)
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: "iteration 2, backward 2" in text_of(app))
        await pilot.press("right_curly_bracket")
        await until(pilot, lambda: app.query_one(StatusBar).status.task == 3)
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: app.query_one(StatusBar).status.task == 2)
        await pilot.press("e")
        await until(pilot, lambda: "there is no program" in text_of(app))
        assert "run 1" in app.query_one(LogPane).text
        await type_in(pilot, "memory", ":")
        await until(pilot, lambda: "there is no program to ask" in app.query_one(LogPane).text)
        await type_in(pilot, "skip", ":")
        await until(pilot, lambda: "there is no program to skip a node of" in app.query_one(LogPane).text)
        await pilot.press("q")
        await until(pilot, lambda: app._exit)

    play(scenario, session)


def test_the_pane_of_functions_says_why_there_are_none(session):
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await pilot.press("9")
        await until(pilot, lambda: "a recording keeps no functions and variables" in text_of(app))

    play(scenario, session, size=(140, 40))


@pytest.mark.slow
def test_a_damaged_page_costs_its_own_nodes_only(tmp_path):
    path = tmp_path / "damaged.gscope"
    w = gs.ones(3, requires_grad=True)
    with gi.record(path):
        for _ in range(2):
            y = w
            for _ in range(1500):
                y = y * 1.0
            y.sum().backward()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE pages SET checksum = 0 WHERE id = (SELECT min(id) FROM pages)")
    connection.close()
    with gi.open_recording(path) as recording:
        session = RecordedSession(recording)

        async def scenario(app, pilot):
            await until(pilot, lambda: "(unreadable)" in text_of(app))
            await pilot.press("right_square_bracket")
            await until(pilot, lambda: "SumBackward0" in text_of(app) and "(unreadable)" not in text_of(app))

        play(scenario, session)
        lost, whole = RecordedNodes(recording, recording.tasks()[0]), RecordedNodes(recording, recording.tasks()[1])
        assert [node.name for node in whole.bare()] == [node.name for node in whole]
        assert [node.name for node in whole.candidates(3)] == [node.name for node in whole][3:]
        assert [node.name for node in lost.bare()] == [node.name for node in lost]
        assert [node.index for node in lost] == list(range(len(lost)))
        assert lost[3:5] == list(lost)[3:5]
        assert lost.known_norms() == norms_by_place(lost)


def test_norms_are_read_without_a_record(session, monkeypatch):
    monkeypatch.delattr(gi.Recording, "decode")
    assert set(known_norms(session.nodes)) == {0, 1, 2, 3}


def test_norms_are_those_of_the_records(tmp_path):
    class Halves(gs.autograd.Function):
        """Gives two halves; where one of them gets no gradient, it brings none."""

        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x[:2] * 1, x[2:] * 1

        @staticmethod
        def backward(ctx, first, second):
            return None if second is None else gs.cat([first, second])

    with gi.record(tmp_path / "halves.gscope"):
        for both in (True, False):
            first, second = Halves.apply(gs.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True) * 1)
            (first * first * second if both else first * float("inf")).sum().backward()
    with gi.open_recording(tmp_path / "halves.gscope") as recording:
        for task in recording.tasks():
            norms, read = known_norms(RecordedNodes(recording, task)), norms_by_place(task.nodes)
            assert (task.number, len(norms) < task.count) in ((1, False), (2, True))
            assert list(map(repr, norms.items())) == list(map(repr, read.items()))


def test_a_node_at_which_nobody_has_looked_has_no_norm():
    nodes, tensors = numpy.zeros(3, NODE), numpy.zeros(2, TENSOR)
    nodes["incoming"], tensors["norm"] = (-1, 1, 1), (3.0, 4.0)
    assert list(recorded_nodes._norms_on(Page(nodes, tensors, None, {}), 5)) == [(6, 3.0), (7, 4.0)]


def test_norms_are_read_once_until_the_recording_has_more(tmp_path):
    w = gs.ones(2, requires_grad=True)
    with gi.record(tmp_path / "growing.gscope") as recorder:
        (w * 2).sum().backward()
        recorder.flush()
        with gi.open_recording(tmp_path / "growing.gscope") as recording:
            session = RecordedSession(recording)
            session.start()
            before = known_norms(session.nodes)
            assert before == norms_by_place(list(session.nodes))
            assert set(before) == set(range(len(session.nodes)))
            session.step()
            assert known_norms(session.nodes) is before
            (w * 2).sum().backward()
            recorder.flush()
            session.restart()
            session.next_backward()
            assert set(known_norms(session.nodes)) == set(range(len(session.nodes)))


@pytest.mark.slow
def test_no_more_gradients_are_read_than_are_looked_at(tmp_path, monkeypatch):
    path = tmp_path / "long.gscope"
    with gi.record(path):
        y = gs.ones(2, requires_grad=True)
        for _ in range(3000):
            y = y * 1.0
        y.sum().backward()
    read = []
    decode = gi.Recording.decode

    def noted(self, page, start, stop, first):
        read.append(stop - start)
        return decode(self, page, start, stop, first)

    monkeypatch.setattr(gi.Recording, "decode", noted)
    with gi.open_recording(path) as recording:

        async def scenario(app, pilot):
            await until(pilot, lambda: "◁ REPLAYING #0/3002" in text_of(app))
            await type_in(pilot, "op:Accum*", "/")
            await until(pilot, lambda: "1 of 3002 nodes" in text_of(app))
            app.session.add_breakpoint("op:Sum")
            await pilot.press("n", "n", "G", "t", "C")
            await until(pilot, lambda: app.session.current == 0)

        play(scenario, RecordedSession(recording))
    assert 0 < sum(read) < 1000


def test_the_losses_up_to_the_backward_that_is_shown(tmp_path):
    w = gs.ones(1, requires_grad=True)
    with gi.record(tmp_path / "run.gscope"):
        for value in (4.0, 2.0, 1.0):
            loss = (w * value).sum()
            loss.backward()
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        session = RecordedSession(recording)
        session.start()
        assert session.losses() == (4.0,)
        session.next_backward()
        session.next_backward()
        assert session.losses() == (4.0, 2.0, 1.0)


def test_the_flow_of_gradients_is_told_of_what_is_recorded(tmp_path):
    gs.manual_seed(0)
    model = gs.nn.Sequential(*(layer for _ in range(12) for layer in (gs.nn.Linear(4, 4), gs.nn.Sigmoid())))
    with gi.record(tmp_path / "run.gscope"):
        model(gs.ones(2, 4)).sum().backward()
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        session = RecordedSession(recording)
        session.start()
        flow = session.gradient_flow()
        assert (flow.verdict, len(flow.parameters)) == ("vanishing", 24)
        live = gi.gradient_flow(model)
        assert {p.name: p.grad_norm for p in flow.parameters} == pytest.approx(
            {p.name: p.grad_norm for p in live.parameters}, rel=1e-5
        )
        with pytest.raises(SessionError, match="there is no program that has 'net'"):
            session.gradient_flow("net")

        async def scenario(app, pilot):
            await type_in(pilot, "flow", ":")
            await until(pilot, lambda: "24 of 24 parameters have a gradient" in app.query_one(LogPane).text)

        play(scenario, session, size=(120, 40))
