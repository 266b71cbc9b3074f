"""Shared by all tests: a quiet start for each of them."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

# Before NumPy loads: the tests are many small ones, and threads of BLAS would be in the way of the other workers.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

from gradscope.inspect.adapters import event_guards
from gradscope.inspect.source import source_paths
from gradscope.runtime import events, state
from gradscope.runtime.memory import dtype

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So it is in the background of a shell, and in all that is started there: tests that press Ctrl-C would hang.
    signal.signal(signal.SIGINT, signal.default_int_handler)

event_guards.raising = True  # an error of a rule fails the test that meets it

# Examples take as long as the machine lets them; CI, which is not waited for, tries twice as many.
_EXAMPLES = 100 if os.environ.get("CI") else 50


def pytest_configure(config: pytest.Config) -> None:
    """Have modules loaded at the speed of Python's own, and properties tried as often as there is time for.

    Pytest writes the assertions of a package that has a plugin anew, in all of its modules: those of gradscope and of
    Hypothesis are no tests, and each process would take half a minute for them. The programs that tests start share
    their bytecode, where the environment keeps Python from writing any.
    """
    config.pluginmanager.rewrite_hook._must_rewrite -= {"gradscope", "hypothesis"}  # type: ignore[attr-defined]
    from hypothesis import HealthCheck, settings  # loaded as it is, because nothing is written anew by now

    settings.register_profile(
        "loaded", max_examples=_EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("loaded")
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        folder = os.environ["PYTHONPYCACHEPREFIX"] = tempfile.mkdtemp(prefix="gradscope-bytecode-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


PYTORCH = importlib.util.find_spec("torch") is not None


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Have every second worker of a whole run load the test files from the last to the first.

    Each needs all of them with their assertions written anew, and keeps what it has written beside the file: so they
    meet in the middle and find there what the other has done.
    """
    worker = getattr(session.config, "workerinput", {}).get("workerid", "gw0")
    if session.config.args != session.config.getini("testpaths") or int(worker.removeprefix("gw")) % 2 == 0:
        return
    root = session.config.rootpath
    for path in sorted(Path(root, "tests").rglob("test_*.py"), reverse=True):
        with suppress(Exception, pytest.skip.Exception):  # said where the file is collected
            importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts))


def pytest_report_header() -> str | None:
    """Say what is left out."""
    return None if PYTORCH else "PyTorch is not installed: the tests that compare with it are left out"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the thousands of tests that could do nothing but say one by one that there is no PyTorch."""
    if PYTORCH:
        return
    needing = [
        item for item in items if item.get_closest_marker("torch") or "torch" in getattr(item, "fixturenames", ())
    ]
    if needing:
        left_out = set(needing)
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=needing)


def pytest_collection_finish() -> None:
    """Keep the collected tests, by the million objects, out of every collection and search of objects in a test."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let a worker that is done take over tests of another, where no other ``--dist`` is asked for."""
    if config.option.dist != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture
def own_objects() -> None:
    """Show the test its own objects alone. What lives by now stays frozen: thawed, the collected tests were back."""
    gc.collect()
    gc.freeze()


def _collector_comes_back() -> bool:
    """Whether the collector is on, at the latest when an aborted program has laid down what it held."""
    deadline = time.monotonic() + 10
    while not gc.isenabled() and time.monotonic() < deadline:
        time.sleep(0.01)
    return gc.isenabled()


@pytest.fixture(autouse=True)
def _graphs_are_freed_at_once() -> None:
    """No test's graph is cut for a thread to free the rest: it may take longer than the test looks."""
    found = sys.modules.get("gradscope.inspect.adapters.torch.graph_freeing")
    if found is not None:
        found._left = 1 << 60


@pytest.fixture(autouse=True)
def _untouched_modes() -> Iterator[None]:
    """A test leaves the modes and listeners of the runtime as it found them."""
    yield
    leaked = []
    if not state.local.grad_enabled:
        leaked.append("grad mode is off")
    if state.local.inference:
        leaked.append("inference mode is on")
    if state.anomaly:
        leaked.append("anomaly mode is on")
    if not _collector_comes_back():
        gc.enable()
        leaked.append("the garbage collector is off")
    if state.special:
        leaked.append(f"listeners or hook pairs are left ({state.modes_on} modes are on)")
    state.local.grad_enabled, state.local.inference, state.local.saved_hooks = True, False, ()
    if dtype.get_default_dtype() is not dtype.float32:
        dtype.set_default_dtype(dtype.float32)
        leaked.append("the default dtype was changed")
    assert not leaked, f"left behind by the test: {'; '.join(leaked)} ({events.__name__})"


@pytest.fixture(autouse=True)
def _own_exception_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process group that a test makes leaves a hook of PyTorch's that prints in another way."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


@pytest.fixture(autouse=True)
def _started_where_pytest_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that a test has run on a thread of this process says where it was started; the next test has not."""
    monkeypatch.setattr(source_paths, "_started_in", source_paths.start_directory())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `other_device` runs on each of them, CUDA too where there is a device."""
    if "other_device" in metafunc.fixturenames:
        from tests.other_devices import OTHER_DEVICES

        metafunc.parametrize("other_device", OTHER_DEVICES)


@pytest.fixture
def torch() -> object:
    """PyTorch, to compare with; tests that ask for it are skipped where it is not installed."""
    return pytest.importorskip("torch", reason="compares with PyTorch")
