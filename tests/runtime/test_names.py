"""The names of ``gradscope`` itself load with the first of them, or with the first module of the runtime."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gradscope as gs
from gradscope.runtime import names


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_a_name_is_looked_up_once():
    code = "import sys, gradscope as gs; print('numpy' in sys.modules, 'ones' in vars(gs)); gs.ones; "
    assert run(code + "print('zeros' in vars(gs), gs.ones is vars(gs)['ones'])") == "False False\nTrue True\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "first",
    [
        "gradscope.runtime.tensor.tensor", "gradscope.runtime.memory.dtype", "gradscope.runtime.engine.graph_task",
        "gradscope.nn.functional", "gradscope.autograd.v01", "gradscope.inspect.adapters", "gradscope.optim.sgd",
    ],
)  # fmt: skip
def test_any_module_may_be_imported_first(first):
    code = f"import {first}; import gradscope as gs; x = gs.ones(2, requires_grad=True); (x * x).sum().backward(); "
    assert run(code + "print(x.grad.tolist(), x.volatile)") == "[2.0, 2.0] False\n"


def test_all_names_are_told():
    assert set(names.PUBLIC) <= set(dir(gs)) & set(gs.__all__)
    assert {"nn", "optim", "load", "autocast"} <= set(gs.__all__)
    assert run("from gradscope import *; print(tensor([1.0]).sum().item(), nn.Linear.__name__)") == "1.0 Linear\n"


def test_there_is_nothing_else():
    with pytest.raises(AttributeError, match="module 'gradscope' has no attribute 'nothing'"):
        gs.nothing
    assert not hasattr(gs, "_private")
