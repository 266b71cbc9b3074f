"""``gradscope graph`` as a user runs it: in a process of its own, on real scripts."""

import json
import os
import signal
import subprocess
import sys
from textwrap import dedent

import pytest

from gradscope.cli import main
from tests.gradscope_command import gradscope

TRAIN = """\
import sys
import gradscope as gs

gs.manual_seed(0)
print("noise")
model = gs.nn.Sequential(*(gs.nn.Linear(3, 3) for _ in range(4)), gs.nn.Linear(3, 1))
model.spare = gs.nn.Parameter(gs.ones(2))
optimizer = gs.optim.Adam(model.parameters(), lr=0.01)
for step in range(3):
    loss = (model(gs.randn(8, 3)) ** 2).mean() * (step + 1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with open("steps", "a") as file:
        file.write(f"{step} {sys.argv[1:]}\\n")
"""


def graph(tmp_path, source, *options, arguments=()):
    """Run ``gradscope graph`` on a script in a process of its own."""
    (tmp_path / "script.py").write_text(dedent(source))
    return gradscope("graph", *options, "script.py", *arguments, cwd=tmp_path)


def test_without_a_file_it_prints_numbers_and_a_tree(tmp_path):
    done = graph(tmp_path, TRAIN)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "18 nodes, 17 edges, 9 deep, 3 wide"
    assert "10 reached, 1 not reached: spare" in done.stdout
    assert "noise" not in done.stdout
    assert lines[-1].startswith("└─ 4")
    assert not (tmp_path / "steps").exists()  # the script has been ended before


@pytest.mark.parametrize("option", ["-o", "--output"])
def test_the_file_may_stand_last(tmp_path, option):
    source = f"import sys\nassert sys.argv[1:] == ['-o', 'mine.pt'], sys.argv\n{dedent(TRAIN)}"
    done = graph(tmp_path, source, arguments=["-o", "mine.pt", option, "loss.svg"])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "loss.svg").read_text().startswith("<svg")
    again = graph(tmp_path, source.replace("mine.pt", "mine.svg"), "-o", "own.dot", arguments=["-o", "mine.svg"])
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "own.dot").exists()


@pytest.fixture
def here(tmp_path, monkeypatch, capfd):
    """Give a function that does the same in this process, which takes less time."""
    monkeypatch.chdir(tmp_path)

    def run(source, *options):
        (tmp_path / "script.py").write_text(dedent(source))
        status = main(["graph", *options, "script.py"])
        return status, *capfd.readouterr()

    return run


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("a.svg", "<svg"),
        ("a.dot", "digraph"),
        ("a.mermaid", "flowchart"),
        ("a.graphml", "<?xml"),
        ("a.json", '{"directed"'),
        ("a.html", "<!DOCTYPE html>"),
    ],
)
def test_files(tmp_path, here, name, start):
    assert here(TRAIN, "-o", name) == (0, f"{name}: 18 nodes\n", "")
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


def test_the_second_backward_with_its_gradients_on_stdout(tmp_path):
    options = ("-o", "-", "--format", "json", "--backward", "2", "--gradients", "--stats")
    done = graph(tmp_path, TRAIN, *options, arguments=("--epochs", "1"))
    assert done.returncode == 0
    assert done.stderr.startswith("18 nodes")
    nodes = json.loads(done.stdout)["nodes"]
    assert nodes[0]["operator"] == "Mul"
    assert nodes[1]["grad_outputs"][0]["norm"] == 2.0
    assert all(node["state"] == "done" and node["seconds"] >= 0 for node in nodes)
    assert {node["location"]["lineno"] for node in nodes if node["location"]} == {10}
    assert (tmp_path / "steps").read_text() == "0 ['--epochs', '1']\n"


def test_folded_and_cut(tmp_path, here):
    assert here(TRAIN, "-o", "a.svg", "--fold", "blocks") == (0, "a.svg: 18 nodes, folded to 5\n", "")
    assert "[0-3] ×4" in (tmp_path / "a.svg").read_text(encoding="utf-8")
    status, out, _ = here(TRAIN, "-o", "a.svg", "--to", "3.weight")
    assert (status, out.splitlines()) == (
        0,
        [
            "a.svg: 6 nodes",
            "1 path to 3.weight",
            "all pass through Mul (node 0), Mean (node 1), Pow (node 2), Addmm (node 3), Addmm (node 6)",
        ],
    )
    _, out, _ = here(TRAIN, "-o", "a.svg", "--from", "node:6", "--fold", "module", "--depth", "1")
    assert out == "a.svg: 12 nodes, folded to 4\n"


@pytest.mark.parametrize(
    ("source", "options", "status", "message"),
    [
        ("x = 1", (), 1, "script.py finished without calling backward(), so there is no graph"),
        (TRAIN, ("--backward", "9"), 1, "script.py finished after 3 of 9 backwards"),
        (
            "1 / 0",
            (),
            1,
            "script.py raised ZeroDivisionError: division by zero (script.py:1, before its first backward)",
        ),
        ("import sys; sys.exit(3)", (), 1, "script.py ended with exit status 3, before its first backward"),
        ("(", (), 1, "script.py raised SyntaxError: '(' was never closed"),
        (TRAIN, ("-o", "nowhere/a.svg"), 1, "cannot write nowhere/a.svg: there is no directory nowhere"),
        (TRAIN, ("-o", "."), 2, "there is no format for the ending of '.'"),
        (TRAIN, ("-o", "a.xyz"), 2, "there is no format for the ending of 'a.xyz': choose one of svg"),
        (TRAIN, ("--format", "png"), 2, "there is no format 'png'"),
        (TRAIN, ("--to", "5.weight"), 1, "there is no node '5.weight' in this graph"),
        (TRAIN, ("--fold", "blocks", "--depth", "2"), 2, "--depth goes with --fold module"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(here, source, options, status, message):
    done, out, err = here(source, *options)
    assert (done, out) == (status, "")
    assert err.startswith(f"gradscope graph: {message}")
    assert "Traceback" not in err


def test_no_script(capsys):
    assert main(["graph", "nope.py"]) == 2
    assert capsys.readouterr().err == "gradscope graph: there is no script 'nope.py'\n"


def test_a_script_that_catches_everything_and_has_threads_ends_all_the_same(tmp_path):
    source = """\
    import threading, time
    import gradscope as gs
    threading.Thread(target=time.sleep, args=(60,)).start()
    x = gs.ones(2, requires_grad=True)
    while True:
        try:
            (x * 2).sum().backward()
        except BaseException:
            continue
    """
    done = graph(tmp_path, source)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("3 nodes")


def test_a_script_that_waits_for_ever_is_left(tmp_path):
    (tmp_path / "script.py").write_text(
        dedent(
            """\
            import queue, threading
            import gradscope as gs

            def work():
                (gs.ones(2, requires_grad=True) * 2).sum().backward()

            threading.Thread(target=work, daemon=True).start()
            queue.SimpleQueue().get()
            """
        )
    )
    command = "from gradscope.cli import graph, main; graph._PATIENCE = 0.2; main(['graph', 'script.py'])"
    done = subprocess.run([sys.executable, "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("3 nodes")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such signals")
def test_a_script_has_its_signals_and_the_main_thread(tmp_path):
    source = """\
    import signal, threading, time
    import gradscope as gs

    def late(number, frame):
        raise TimeoutError

    assert threading.current_thread() is threading.main_thread()
    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    try:
        time.sleep(60)
    except TimeoutError:
        gs.ones(2, requires_grad=True).exp().sum().backward()
    """
    done = graph(tmp_path, source)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("3 nodes")


def test_only_the_graph_is_written_and_where_it_was_asked_for(tmp_path):
    source = """\
    import os, subprocess, sys
    import gradscope as gs
    print("noise")
    subprocess.run([sys.executable, "-c", "print('of a process')"])
    os.mkdir("elsewhere")
    os.chdir("elsewhere")
    gs.ones(2, requires_grad=True).sum().backward()
    """
    done = graph(tmp_path, source, "-o", "-", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "of a process\n")
    assert len(json.loads(done.stdout)["nodes"]) == 2
    (tmp_path / "elsewhere").rmdir()
    assert graph(tmp_path, source, "-o", "a.svg").stdout == "a.svg: 2 nodes\n"
    assert (tmp_path / "a.svg").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_process_that_the_script_forks_has_no_part_in_it(tmp_path):
    source = """\
    import os, sys
    import gradscope as gs
    x = gs.ones(2, requires_grad=True)
    if not os.fork():
        x.sum().backward()
        sys.exit(x.grad.tolist() != [1, 1])
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
    (x * 2).sum().backward()
    """
    done = graph(tmp_path, source)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("3 nodes")


def test_a_backward_that_fails_shows_where(tmp_path):
    source = """\
    import gradscope as gs
    class Bad(gs.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2
        @staticmethod
        def backward(ctx, grad):
            raise ValueError("no")
    x = gs.ones(2, requires_grad=True)
    Bad.apply(x).sum().backward()
    """
    done = graph(tmp_path, source, "-o", "-", "--format", "json", "--gradients")
    assert done.returncode == 0
    assert [node.get("state") for node in json.loads(done.stdout)["nodes"]] == ["done", "failed", None]


@pytest.mark.torch
def test_a_torch_script(tmp_path):
    pytest.importorskip("torch")
    source = """\
    import torch
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    net(torch.ones(5, 3)).sum().backward()
    """
    done = graph(tmp_path, source, "-o", "a.svg", "--fold", "module", "--gradients")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "a.svg: 10 nodes, folded to 4\n"
    assert "gradient norm" in (tmp_path / "a.svg").read_text(encoding="utf-8")
