from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

STARTUP = Path(__file__).parents[2] / "startup"
LISTENING = "gradscope: listening at "
# What an installation puts into site-packages is in a folder of the test: what is installed may be older.
SITE = f"import site; site.addsitedir({str(STARTUP)!r}); "


@pytest.fixture(autouse=True)
def needs_torch():
    if importlib.util.find_spec("torch") is None:
        pytest.skip("is about PyTorch programs")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run lines in a process of their own, as a user's file; return what they print, and stderr."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("GRADSCOPE_LISTEN", "1")

    def run(source):
        (tmp_path / "train.py").write_text(source)
        start = SITE + "import runpy; runpy.run_path('train.py', run_name='__main__')"
        done = subprocess.run([sys.executable, "-c", start], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout, done.stderr

    return run


USES = {
    "a module": "torch.nn.Linear(2, 1)(torch.ones(2))",
    "backward": "torch.ones(2, requires_grad=True).sum().backward()",
    "torch.autograd.backward": "torch.autograd.backward([torch.ones((), requires_grad=True) * 2])",
    "torch.autograd.grad": "torch.autograd.grad((x := torch.ones((), requires_grad=True)) * 2, x)",
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_program_listens_once_pytorch_is_used(run, use):
    out, err = run(
        "import sys, torch\nprint('gradscope' in sys.modules)\n"
        f"{use}\nprint('gradscope.inspect.wire.listening' in sys.modules)\n{use}\n"
        "print([f.__module__ for f in (torch.autograd.backward, torch.autograd.grad)])\n"
        "print([hook.__module__ for hook in torch.nn.modules.module._global_forward_pre_hooks.values()])\n"
    )
    assert out.splitlines()[:3] == ["False", "True", "['torch.autograd', 'torch.autograd']"]
    assert "gradscope_listen" not in out.splitlines()[3]
    assert err.count(LISTENING) == 1


def test_a_program_that_only_imports_pytorch_leaves_it_to_those_that_it_starts(run):
    child = "import torch; torch.nn.Linear(2, 1)(torch.ones(2))"
    out, err = run(
        "import os, subprocess, sys, torch\n"
        f"done = subprocess.run([sys.executable, '-c', {SITE + child!r}], capture_output=True, text=True)\n"
        f"print(done.stderr.count({LISTENING!r}), 'GRADSCOPE_LISTEN' in os.environ, 'gradscope' in sys.modules)\n"
    )
    assert (out, err) == ("1 True False\n", "")


def test_a_program_that_imports_gradscope_listens_once(run):
    out, err = run("import torch, gradscope\ntorch.nn.Linear(2, 1)(torch.ones(2))\nprint('ran')\n")
    assert out == "ran\n"
    assert err.count(LISTENING) == 1


def test_nothing_happens_where_it_was_not_asked_for(run, monkeypatch):
    monkeypatch.delenv("GRADSCOPE_LISTEN")
    out, err = run("import sys, torch\ntorch.nn.Linear(2, 1)(torch.ones(2))\nprint('gradscope_listen' in sys.modules)")
    assert (out, err) == ("False\n", "")


def test_an_instrument_that_came_first_is_kept(run):
    """What has been put over PyTorch's entries meanwhile stays there, and what it passes on to runs once."""
    out, err = run(
        "import torch\nwaiting = torch.autograd.backward\n"
        "def passing_on(*args, **kwargs):\n    return waiting(*args, **kwargs)\n"
        "torch.autograd.backward = passing_on\nx = torch.ones(2, requires_grad=True)\n"
        "x.sum().backward()\nx.sum().backward()\nprint(torch.autograd.backward is passing_on, x.grad)\n"
    )
    assert out == "True tensor([2., 2.])\n"
    assert err.count(LISTENING) == 1
