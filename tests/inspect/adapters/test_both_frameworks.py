"""The adapter for programs of either framework, and how it learns that one is in use."""

import subprocess
import sys
import textwrap
import threading

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.adapters import AnyAdapter, NativeAdapter, adapter_for
from tests.inspect.adapters.watching import Heard
from tests.inspect.sessions import debugging, wait


def python(code):
    """Run code in a fresh interpreter; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_adapter_of_a_thing():
    x = gs.ones(2, requires_grad=True)
    for thing in (x, (x * 2).grad_fn, gs.nn.Linear(1, 1)):
        assert isinstance(adapter_for(thing), NativeAdapter)
    assert isinstance(adapter_for(), AnyAdapter)
    for thing in (3, "x", [x], object()):
        with pytest.raises(TypeError, match=f"is wanted, got {type(thing).__name__}"):
            adapter_for(thing)


@pytest.mark.torch
def test_the_adapter_of_a_thing_of_pytorch(torch):
    x = torch.ones(2, requires_grad=True)
    for thing in (x, (x * 2).grad_fn, torch.nn.Linear(1, 1), torch.autograd.graph.get_gradient_edge(x)):
        assert adapter_for(thing).name == "pytorch"


def test_nothing_imports_pytorch():
    assert python(
        """
        import sys
        import gradscope.inspect as gi, gradscope as gs
        from gradscope.inspect.adapters import AnyAdapter, adapter_for, torch as package
        with gi.track():
            (gs.ones(2, requires_grad=True) * 2).sum().backward()
        session = gi.debug(gs.ones((), requires_grad=True) * 1)
        session.cont(); session.wait()
        print(any(name.partition(".")[0] == "torch" for name in sys.modules), hasattr(package, "x"))
        """
    ) == ["False", "False"]


@pytest.mark.torch
def test_pytorch_is_seen_from_the_moment_it_has_been_imported(torch):
    assert python(
        """
        import sys
        import gradscope.inspect as gi
        from gradscope.inspect.adapters import AnyAdapter
        with gi.track():
            import torch
            assert not any("gradscope" in type(f).__module__ for f in sys.meta_path), sys.meta_path
            loss = (torch.ones(2, requires_grad=True) * 2).sum()
        print([d["location"] is not None for _, d in gi.graph(loss).nodes(data=True)], torch.__spec__.loader.name)
        """
    ) == ["[True,", "True,", "False]", "torch"]


def test_an_import_that_never_comes_leaves_nothing_behind():
    assert python(
        """
        import sys
        import gradscope.inspect as gi
        before = list(sys.meta_path)
        with gi.track():
            assert len(sys.meta_path) == len(before) + 1
            try:
                import there_is_no_such_module
            except ImportError:
                pass
        print(sys.meta_path == before)
        """
    ) == ["True"]


def test_a_pytorch_that_is_too_old_is_told_of_and_left_alone(tmp_path):
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text(
        "__version__ = '1.13.1'\nfrom types import SimpleNamespace\nclass Version: pass\n"
        "autograd = SimpleNamespace(); nn = SimpleNamespace(); old = True\n"
    )
    assert python(
        f"""
        import sys, warnings
        sys.path.insert(0, {str(tmp_path)!r})
        import gradscope.inspect as gi
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with gi.track():
                import torch
        assert torch.old
        print("1.13.1" in str(caught[0].message), caught[0].filename, len(caught))
        """
    ) == ["True", "<string>", "1"]


@pytest.mark.torch
def test_a_program_that_uses_both(torch):
    x, y = gs.tensor([1.0, 2.0], requires_grad=True), torch.tensor([1.0, 2.0], requires_grad=True)

    def run():
        (x * x).sum().backward()
        (y * y).sum().backward()

    with debugging(run) as session:
        session.add_breakpoint("Mul")
        for _ in range(2):
            session.cont()
            wait(session)
            session.set_grad(0, 3.0)
        assert session.task_index == 2
        session.cont()
        assert wait(session) == "finished"
    assert x.grad.tolist() == y.grad.tolist() == [6.0, 12.0]


@pytest.mark.torch
def test_keys_of_both_are_different(torch):
    adapter = AnyAdapter()
    keys = []
    for lib in (gs, torch):
        keys += [adapter.key(adapter.root(lib.ones(2, requires_grad=True) * 2)[0]) for _ in range(3)]
    assert len(set(keys)) == 6


@pytest.mark.torch
def test_a_gradient_may_be_given_as_a_tensor_of_the_other(torch):
    adapter = AnyAdapter()
    made = adapter.tensor_like(gs.tensor([1.0, 2.0]), adapter.spec(torch.ones(2)))
    assert isinstance(made, torch.Tensor)
    made = adapter.tensor_like(torch.tensor([1.0, 2.0]), adapter.spec(gs.ones(2)))
    assert isinstance(made, gs.Tensor)
    assert made.tolist() == [1.0, 2.0]


@pytest.mark.torch
def test_closing_twice_and_on_another_thread(torch):
    adapter = AnyAdapter()
    heard = Heard(adapter)
    observation = adapter.observe(heard, forward=True, backward=True)
    torch.ones(2, requires_grad=True).sum().backward()
    observation.close()
    observation.close()
    thread = threading.Thread(target=adapter.observe(heard, forward=True, backward=True).close)
    thread.start()
    thread.join()
    count = len(heard.events)
    torch.ones(2, requires_grad=True).sum().backward()
    assert len(heard.events) == count
    assert gi.graph(torch.ones(2, requires_grad=True).sum())
