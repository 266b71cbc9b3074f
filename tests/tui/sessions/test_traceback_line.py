from __future__ import annotations

from gradscope.inspect.records.records import SessionState, StopReason
from gradscope_tui.sessions.traceback_line import raised_at
from tests.tui.fake import FakeSession, play, text_of, until

SAID = """\
loss 0.1
Traceback (most recent call last):
  File "/a/train.py", line 7, in <module>
    main()
  File "/a/model.py", line 40, in main
    layer(x)
    ~~~~~^^^
  File "/usr/lib/python3/dist-packages/torch/nn/module.py", line 9, in _call
    raise ValueError
  File "<frozen importlib>", line 3, in f
ValueError""".splitlines()


def test_it_is_the_innermost_line_of_the_programs_own():
    location = raised_at(SAID)
    assert (location.filename, location.lineno, location.function) == ("/a/model.py", 40, "main")
    assert location.source == "layer(x)"


def test_of_several_tracebacks_the_last_counts_and_without_one_there_is_none():
    again = [SAID[1], '  File "/a/other.py", line 2, in g', "    1 / 0", "ZeroDivisionError"]
    assert raised_at(SAID + again).filename == "/a/other.py"
    assert raised_at(["all is well", "File it"]) is None


def test_a_script_that_has_failed_is_shown_at_that_line(tmp_path):
    script = tmp_path / "model.py"
    script.write_text("x = 1\ny = {}\nz = y['b']\n")
    session = FakeSession()
    session.output = ["Traceback (most recent call last):", f'  File "{script}", line 3, in <module>', "    z = y['b']"]

    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        session.stop(0, StopReason("finished", "exit status 1"), SessionState.FAILED)
        await until(pilot, lambda: "›   3  z = y['b']" in text_of(app))

    play(scenario, session, size=(120, 40))
