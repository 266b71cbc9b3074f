"""Real programs run unchanged under the debugger: models of `transformers` and of torch.nn that nobody here wrote."""

import contextlib
import io
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from gradscope.inspect import Debugger
from gradscope.inspect.adapters import adapter_for
from tests.inspect.adapters.packages import require_models_of_transformers
from tests.inspect.sessions import wait

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:::transformers")]

HERE = Path(__file__).parent / "programs"

# Script, how many backwards it runs, the name of the last loss, (operator, module) of some nodes, and where
# parameters live.
PROGRAMS = [
    ("gan", 6, "fooled", [("Addmm", "discriminator.2"), ("LeakyRelu", "discriminator.1")], "discriminator.0.weight"),
    ("lstm", 4, "loss", [("Addmm", "head")], "lstm.weight_hh_l1"),
    (
        "transformer",
        2,
        "loss",
        [("Bmm", "transformer.decoder.layers.0.multihead_attn"), ("Embedding", "embed")],
        "transformer.encoder.layers.0.linear1.weight",
    ),
    (
        "gpt2",
        2,
        "loss",
        [("Addmm", "transformer.h.1.attn.c_attn"), ("Embedding", "transformer.wpe")],
        "transformer.h.0.ln_1.weight",
    ),
    ("bert", 2, "loss", [("Addmm", "bert.encoder.layer.1.attention.self.query")], "cls.predictions.bias"),
]


def plain_run(script):
    """Run a script without a debugger; return its variables and what it printed."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        names = runpy.run_path(str(script), run_name="__main__")
    return names, output.getvalue().splitlines()


@pytest.mark.parametrize(("name", "backwards", "loss", "nodes", "parameter"), PROGRAMS, ids=[p[0] for p in PROGRAMS])
def test_a_real_program(name, backwards, loss, nodes, parameter):
    if name in ("bert", "gpt2"):
        require_models_of_transformers()
    script = HERE / f"{name}.py"
    names, printed = plain_run(script)
    session = Debugger.for_script(str(script))
    session.start()
    try:
        assert wait(session) == "paused before"
        session.step()
        wait(session)
        session.inspect(session.current)
        for number in range(2, backwards + 1):
            session.next_backward()
            wait(session)
            assert (session.task_index, session.current) == (number, 0)
        records = list(session.nodes)
        session.cont()
        assert wait(session) == "finished", session.traceback
    finally:
        session.abort()
    assert session.exit_status == 0
    assert [line for line in session.output if line.startswith(("step", "piece"))] == printed
    assert len(records) == node_count(names[loss])
    found = {(record.operator, record.module) for record in records}
    assert found.issuperset(nodes)
    check_modules(names, records)
    parameters = {record.parameter for record in records if record.name == "AccumulateGrad"}
    assert parameter in parameters
    placed = [r for r in records if r.name != "AccumulateGrad"]
    assert all(r.location is not None for r in placed)
    assert not any(str(Path(torch.__file__).parent) in r.location.filename for r in placed)


def node_count(loss):
    """Return how many nodes the graph of a loss has, walked by hand."""
    seen, stack = set(), [loss.grad_fn]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += [child for child, _ in node.next_functions if child is not None]
    return len(seen)


def check_modules(names, records):
    """Check that every module that a record names is there, under that path."""
    paths = set()
    for name, value in names.items():
        if isinstance(value, torch.nn.Module):
            paths |= {path for path, _ in value.named_modules()}
            paths |= {f"{name}.{path}" if path else name for path, _ in value.named_modules()}
    known = {record.module for record in records if record.module and "Loss" not in record.module}
    assert known
    assert known <= paths


def test_the_command_opens_a_program_that_imports_pytorch_itself():
    """The debugger starts without PyTorch and sees it from the moment the script has imported it."""
    command = [sys.executable, "-m", "gradscope", "debug", "--line", "-c", "step; print; continue; quit"]
    done = subprocess.run([*command, str(HERE / "gan.py")], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "stopped before node 1 of 10: AddmmBackward0  discriminator.2" in done.stdout
    assert "gan.py:25  right = criterion(discriminator(real), torch.ones(4, 1))" in done.stdout
    _, printed = plain_run(HERE / "gan.py")
    assert [line for line in done.stdout.splitlines() if line.startswith("step ")] == printed


@pytest.mark.parametrize("attempt", range(3))
def test_leaving_in_the_middle_of_a_backward_waits_for_what_pytorch_frees(attempt):
    command = [sys.executable, "-m", "gradscope", "debug", "--line", "-c", "step 3; quit", str(HERE / "gan.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_graph_of_a_hundred_thousand_nodes_in_a_row(tmp_path):
    """PyTorch recurses when it frees nodes that Python has looked at: the program's thread has the stack for it."""
    script = tmp_path / "deep.py"
    script.write_text(
        "import torch\ny = torch.ones((), requires_grad=True)\nfor _ in range(100_000):\n    y = y + 1.0\n"
        "y.backward()\ndel y\nprint('freed')\n"
    )
    command = [sys.executable, "-m", "gradscope", "debug", "-c", "step; continue; quit", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, "freed" in done.stdout) == (0, True), done.stderr


def test_a_graph_of_a_real_program_is_that_of_its_loss():
    names, _ = plain_run(HERE / "lstm.py")
    import gradscope.inspect as gi

    model = gi.graph(names["loss"], params=names["model"])
    assert len(model) == node_count(names["loss"])
    leaves = {d["parameter"] for _, d in model.nodes(data=True) if d["name"] == "AccumulateGrad"}
    assert leaves == {path for path, _ in names["model"].named_parameters()}
    assert adapter_for(names["loss"]).name == "pytorch"
