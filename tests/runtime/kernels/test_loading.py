"""Compiled kernels are loaded where they can be, and it is said why where they cannot."""

import builtins
import importlib
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from gradscope.runtime.kernels import forms, loading
from tests.runtime.kernels.test_forms import SILU, normal, silu


@pytest.fixture
def forgetful():
    """What is compiled is loaded anew, and for the next test anew too."""
    kept = loading._load, loading.compiled, forms._loop
    for function in kept:
        function.cache_clear()
    yield
    for function in kept:
        function.cache_clear()


def test_the_environment_leaves_the_compiled_forms_out(monkeypatch, forgetful):
    monkeypatch.setenv("GRADSCOPE_KERNELS", "numpy")
    assert loading.compiled("activation_loops") is None
    assert loading.compiler() == "NumPy: GRADSCOPE_KERNELS=numpy"


def test_a_numba_that_compiles_nothing_leaves_the_compiled_forms_out(monkeypatch, forgetful):
    config = pytest.importorskip("numba", reason="compiles kernels").config
    monkeypatch.setattr(config, "DISABLE_JIT", 1)
    assert loading.compiled("waiting_loops") is None
    assert loading.compiler() == "NumPy: NUMBA_DISABLE_JIT=1"


def test_without_numba_numpys_forms_run(monkeypatch, forgetful):
    real = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == "numba":
            raise ModuleNotFoundError("No module named 'numba'")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    x = normal(forms.LEAST)
    np.testing.assert_array_equal(forms.pointwise(SILU, silu, x), silu(x))
    assert loading.compiler() == "NumPy: Numba cannot be imported (No module named 'numba')"


def test_a_kernel_that_does_not_compile_leaves_numpys_form(monkeypatch, forgetful):
    pytest.importorskip("numba", reason="compiles kernels")

    def fail(name):
        raise ValueError("no such target\nand pages of reasons")

    monkeypatch.setattr(loading, "importlib", SimpleNamespace(import_module=fail))
    assert loading.compiled("activation_loops") is None
    assert loading.compiler() == "NumPy: Numba cannot compile error_function_loops (ValueError: no such target)"


def test_what_does_not_compile_is_told_by_the_kernels_name(monkeypatch, forgetful):
    pytest.importorskip("numba", reason="compiles kernels")
    jit = importlib.import_module("gradscope.runtime.kernels.compiled.jit")

    def load(name):
        @jit.kernel(jit.IN1, jit.OUT1)
        def erf(x, y):
            y[0] = x.nothing

    monkeypatch.setattr(loading, "importlib", SimpleNamespace(import_module=load))  # Numba has its own
    assert loading.compiler() == (
        "NumPy: Numba cannot compile error_function_loops.erf (TypingError: Failed in nopython mode pipeline (step: "
        "nopython frontend): Unknown attribute 'nothing' of type readonly array(float32, 1d, C))"
    )


@pytest.mark.parametrize("writable", [True, False], ids=["kept", "nowhere to keep"])
def test_compiled_kernels_are_kept_where_there_is_a_folder(tmp_path, writable):
    pytest.importorskip("numba", reason="compiles kernels")
    folder = tmp_path / "cache"
    if not writable:
        folder.write_text("a file where the folder should be")
    program = """if True:
        from gradscope.runtime.kernels import loading
        assert loading.compiled("error_function_loops"), loading._load("error_function_loops")
        """
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder), "NUMBA_CACHE_DIR": ""}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    kept = list(folder.rglob("error_function_loops.erf*.nbc"))
    assert len(kept) == (1 if writable else 0)


def test_threads_that_load_kernels_at_once_leave_numbas_folder_as_it_was(monkeypatch, forgetful):
    config = pytest.importorskip("numba", reason="compiles kernels").config
    folders, before = [], config.CACHE_DIR

    def load(name):
        folders.append(config.CACHE_DIR)
        time.sleep(0.05)

    monkeypatch.setattr(loading, "importlib", SimpleNamespace(import_module=load))
    loaders = [
        threading.Thread(target=loading.compiled, args=(family,)) for family in ("activation_loops", "sum_loops")
    ]
    for loader in loaders:
        loader.start()
        time.sleep(0.02)  # the second one begins while the first one loads, and ends after it
    for loader in loaders:
        loader.join()
    assert len(folders) == 2
    assert (folders[0], config.CACHE_DIR) == (folders[1], before)
