"""PyTorch's warnings name the user's line, and are shown as often as without an observer."""

import warnings

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

from gradscope.inspect.adapters.protocol import Observer  # noqa: E402
from gradscope.inspect.adapters.torch import TorchAdapter  # noqa: E402
from tests.pytorch_versions import require_pytorch  # noqa: E402

pytestmark = pytest.mark.torch

KINDS = [
    {"forward": True, "backward": True},
    {"forward": True, "backward": True, "operators": True},
    {"forward": False, "backward": False, "writes": True},
]


def warn_often():
    """Warn from C++ and from Python, at the top and below, on several lines and on one line twice."""
    x = torch.ones(3, 3, requires_grad=True)
    for _ in range(2):
        functional.softmax(x)
        functional.mse_loss(x, torch.ones(3))
    functional.softmax(x)
    _ = (x * 2).grad
    torch.tensor(x)
    x.new_tensor(x)
    torch.ones(1, requires_grad=True).std()
    torch.add(torch.ones(3), 1, out=torch.ones(2))


def told(action, run, *, inside=False):
    """Return what is shown of a run under a filter, put there before it or (as programs do) by it."""
    globals().pop("__warningregistry__", None)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("ignore" if inside else action)
        run(lambda: warnings.simplefilter(action))
    return [(w.category, str(w.message), w.filename, w.lineno) for w in shown]


def plain(configure):
    configure()
    warn_often()


@pytest.mark.parametrize("wanted", KINDS, ids=["nodes", "operators", "writes"])
@pytest.mark.parametrize("action", ["always", "default", "module", "once"])
@pytest.mark.parametrize("inside", [False, True])
def test_the_same_warnings_for_the_same_lines(wanted, action, inside):
    def observed(configure):
        with TorchAdapter().observe(Observer(), **wanted):
            if inside:
                configure()
            warn_often()

    expected = told(action, plain)
    assert len(expected) >= 4
    assert {filename for _, _, filename, _ in expected} == {__file__}
    assert told(action, observed, inside=inside) == expected


def warn_in_backward():
    """Have a hook of a module warn of who called backward(), on one line twice and on another."""
    model = torch.nn.Linear(2, 2)
    model.register_full_backward_hook(lambda module, produced, given: None)
    for _ in range(2):
        model(torch.ones(1, 2)).sum().backward()
    model(torch.ones(1, 2)).sum().backward()


@pytest.mark.parametrize("wanted", KINDS, ids=["nodes", "operators", "writes"])
@pytest.mark.parametrize("action", ["always", "default"])
def test_a_warning_of_a_hook_names_the_line_that_called_backward(wanted, action):
    require_pytorch(torch, "2.8")  # 2.4 does not warn of such a hook

    def observed(configure):
        with TorchAdapter().observe(Observer(), **wanted):
            warn_in_backward()

    def alone(configure):
        warn_in_backward()

    expected = told(action, alone)
    assert len(expected) == 3 - (action == "default")
    assert told(action, observed) == expected


def test_an_error_is_raised_where_the_program_asks_for_one():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with TorchAdapter().observe(Observer(), forward=True, backward=True):
            x = torch.ones(2, requires_grad=True)
            with pytest.raises(UserWarning, match="non-leaf"):
                _ = (x * 2).grad


def test_nothing_is_left_behind():
    before = list(warnings.filters), warnings._showwarnmsg
    with TorchAdapter().observe(Observer(), forward=True, backward=True):
        assert warnings._showwarnmsg is not before[1]
    assert (list(warnings.filters), warnings._showwarnmsg) == before


def test_torch_compile_does_not_warn_of_our_hooks():
    compiled = torch.compile(torch.nn.Linear(2, 1), backend="eager")
    before = list(warnings.filters)
    with warnings.catch_warnings(record=True) as shown:
        with TorchAdapter().observe(Observer(), forward=True, backward=True):
            compiled(torch.ones(3, 2)).sum().backward()
    assert [str(w.message) for w in shown if "global hooks" in str(w.message)] == []
    assert warnings.filters == before
