"""What the adapter for PyTorch answers."""

import gc
import weakref

import pytest

import gradscope.inspect as gi
from gradscope.check import Sanitizer
from gradscope.inspect.adapters import adapter_for
from gradscope.inspect.adapters.memory_fingerprint import UNREAD
from gradscope.inspect.adapters.protocol import Observer
from gradscope.inspect.records.records import Location

torch = pytest.importorskip("torch")

from torch.autograd import graph as torch_graph  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from gradscope.inspect.adapters.torch.saved_tensors import late_hooks  # noqa: E402
from gradscope.inspect.adapters.torch.torch_adapter import _prints_of_any  # noqa: E402
from tests.pytorch_versions import require_pytorch  # noqa: E402

pytestmark = pytest.mark.torch

# PyTorch 2.4 does not tell what gradients a node expects.
TELLS = hasattr(torch._C._functions.AccumulateGrad, "_input_metadata")


@pytest.fixture
def adapter():
    return adapter_for(torch.ones(()))


def leaf(*values):
    return torch.tensor(values or (1.0, 2.0), requires_grad=True)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x, None, factor)
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        x, _, factor = ctx.saved_tensors
        return grad * factor, (grad * x).sum()


# --- nodes ------------------------------------------------------------------------------------------------------------


def test_tensors_and_roots(adapter):
    x = leaf()
    assert adapter.is_tensor(x)
    assert not adapter.is_tensor([1.0])
    assert adapter.root(torch.ones(2)) is None
    node, nr = adapter.root(x)
    assert (adapter.node_name(node), nr) == ("AccumulateGrad", 0)
    assert adapter.variable(node) is x
    _, second = x.unbind()
    node, nr = adapter.root(second)
    assert (adapter.node_name(node), nr, adapter.variable(node)) == ("UnbindBackward0", 1, None)
    told = [((), "float32", "cpu")] * 2
    assert [(o.shape, o.dtype, o.device) for o in adapter.outputs(node)] == (told if TELLS else [])


def test_names_carry_no_namespace(adapter):
    x = leaf()
    y = x * 1
    y[0] = 3.0
    assert adapter.node_name(y.grad_fn) == "CopySlices"
    assert adapter.node_name(Scaled.apply(x, torch.tensor(2.0)).grad_fn) == "ScaledBackward"


def test_a_key_outlives_the_python_object_of_its_node(adapter):
    y = leaf().exp().sum()
    (child,) = [c for c, _ in y.grad_fn.next_functions]
    key = adapter.key(child)
    del child
    gc.collect()
    _churn = [leaf().sum().grad_fn for _ in range(50)]
    assert adapter.key(y.grad_fn.next_functions[0][0]) == key


def test_keys_are_never_given_twice(adapter):
    keys = []
    for _ in range(50):
        y = leaf() * 2
        keys.append(adapter.key(y.grad_fn))
        del y
    assert len(set(keys)) == 50


def test_an_in_place_write_to_a_view_rebases_and_leaves_an_edge_to_nowhere(adapter):
    base = torch.zeros(3)
    base[:2] = leaf()
    children = [child for child, _ in adapter.edges(base.grad_fn)]
    assert [None if c is None else adapter.node_name(c) for c in children] == [None, "AccumulateGrad"]
    model = gi.graph(base.sum())
    assert [d["name"] for _, d in model.nodes(data=True)] == ["SumBackward0", "CopySlices", "AccumulateGrad"]


def test_a_model_keeps_no_node_and_no_tensor_alive():
    x = leaf()
    y = x * 2
    tensors = [weakref.ref(x), weakref.ref(y)]
    gc.collect()
    gc.disable()
    try:
        model = gi.graph(y.sum())
        del x, y
        assert [tensor() for tensor in tensors] == [None, None]
    finally:
        gc.enable()
    assert len(model) == 3


def test_memory_keys_are_shared_by_views_and_versions_told(adapter):
    x = torch.zeros(4)
    assert adapter.memory_key(x) == adapter.memory_key(x[1:]) == adapter.memory_key(x.detach())
    assert adapter.memory_key(x) != adapter.memory_key(torch.zeros(4))
    x.add_(1)
    assert adapter.version(x[:2]) == 1
    adapter.memory_key(torch.zeros(2).to_sparse())


def test_an_inference_tensor_has_no_version(adapter):
    with torch.inference_mode():
        x = torch.ones(2)
    assert adapter.version(x) is None


def test_the_gradient_of_a_leaf_without_a_warning(adapter):
    x = leaf()
    y = x * 2
    assert (adapter.leaf_grad(x), adapter.leaf_grad(y)) == (None, None)
    adapter.set_leaf_grad(x, torch.ones(2))
    assert adapter.leaf_grad(x).tolist() == [1.0, 1.0]


# --- saved tensors ----------------------------------------------------------------------------------------------------


def facts(views):
    return [(v.name, v.shape, v.saved_version, v.current_version, v.released) for v in views]


def test_saved_tensors_have_names_and_versions(adapter):
    x = leaf()
    y = x * x.exp()
    assert facts(adapter.saved(y.grad_fn)) == [("other", (2,), 0, 0, False), ("self", (2,), 0, 0, False)]
    assert {v.data.tolist()[0] for v in adapter.saved(y.grad_fn)} == {1.0, torch.tensor(1.0).exp().item()}


def test_a_stale_value_can_be_read_and_torch_still_refuses_it(adapter):
    x = leaf()
    y = x.exp()
    z = y.sum()
    with torch.no_grad():
        y.mul_(2).mul_(2)
    (view,) = adapter.saved(y.grad_fn)
    assert facts([view]) == [("result", (2,), 0, 2, False)]
    assert view.data.tolist() == y.tolist()
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.* is at version 2; expected version 0"):
        z.backward()


def test_a_tensor_saved_after_writes_was_saved_at_their_version(adapter):
    x = torch.ones(2)
    x.add_(1).add_(1)
    y = leaf() * x
    assert [(v.saved_version, v.current_version) for v in adapter.saved(y.grad_fn)] == [(2, 2)]
    x.add_(1)
    assert [(v.saved_version, v.current_version) for v in adapter.saved(y.grad_fn)] == [(2, 3)]


def test_released_saved_tensors_are_told_from_those_that_never_were(adapter):
    loss = torch.nn.functional.linear(torch.ones(1, 2), leaf().reshape(1, 2)).sum()
    node = loss.grad_fn
    while "Mm" not in node.name() and "Addmm" not in node.name() and "Mv" not in node.name():
        node = node.next_functions[0][0]
    before = facts(adapter.saved(node))
    assert before
    assert not any(released for *_, released in before)
    loss.backward()
    assert [released for *_, released in facts(adapter.saved(node))] == [True] * len(before)
    with pytest.raises(RuntimeError, match="has been released"):
        _ = adapter.saved(node)[0].data


def test_a_custom_function(adapter):
    x = leaf()
    y = Scaled.apply(x, torch.tensor(3.0, requires_grad=True))  # until PyTorch 2.12 its node needs it
    node = y.grad_fn
    assert facts(adapter.saved(node)) == [
        ("saved_tensors", (2,), 0, 0, False), ("saved_tensors", (), 0, 0, False),
    ]  # fmt: skip
    assert [g.tolist() for g in adapter.run_node(node, [torch.ones(2)])] == [[3.0, 3.0], 3.0]
    x.detach().add_(1)
    assert facts(adapter.saved(node))[0] == ("saved_tensors", (2,), 0, 1, False)


def test_several_tensors_under_one_name(adapter):
    x = leaf()
    node = x[torch.tensor([0, 1]),].grad_fn
    assert [(v.name, v.dtype) for v in adapter.saved(node)] == [("indices", torch.int64)]


def test_what_a_hook_has_packed_is_neither_unpacked_nor_called_modified(adapter):
    unpacked = []
    hooks = torch_graph.saved_tensors_hooks(lambda t: ("packed", t.detach()), lambda p: unpacked.append(1) or p[1])
    with adapter.observe(Observer(), forward=True, backward=False), hooks:
        y = leaf().exp()
    (view,) = adapter.saved(y.grad_fn)
    assert (view.saved_version, view.current_version, view.released, view.shape) == (None, None, False, None)
    assert unpacked == []
    y.sum().backward()
    assert unpacked == [1]


# --- running ----------------------------------------------------------------------------------------------------------


def test_run_one_node_alone(adapter):
    y = leaf().exp()
    (produced,) = adapter.run_node(y.grad_fn, [torch.ones(2)])
    assert torch.equal(produced, y)
    assert not produced.requires_grad
    y.sum().backward()


def test_gradients_that_are_asked_for_run_no_hook_of_a_leaf(adapter):
    x = leaf()
    called = []
    x.register_hook(lambda g: called.append("tensor"))
    x.register_post_accumulate_grad_hook(lambda p: called.append("accumulated"))
    y = x.exp() * 2
    found, nothing = adapter.gradients([y], [torch.ones(2)], [x, leaf()])
    assert torch.equal(found, 2 * x.detach().exp())
    assert (nothing, called, x.grad) == (None, [], None)
    y.sum().backward()
    assert called == ["tensor", "accumulated"]


# --- where ------------------------------------------------------------------------------------------------------------


def test_lines_are_the_users_and_never_pytorchs():
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8)
    with gi.track():
        loss = layer(torch.ones(3, 1, 4)).sum()
    model = gi.graph(loss, params=layer)
    places = {d["location"] for _, d in model.nodes(data=True) if d["name"] != "AccumulateGrad"}
    assert {(place.filename, place.function) for place in places} == {
        (__file__, "test_lines_are_the_users_and_never_pytorchs")
    }
    assert {place.source for place in places} == {"loss = layer(torch.ones(3, 1, 4)).sum()"}
    assert all(isinstance(place, Location) for place in places)


def test_a_custom_functions_line_is_where_it_was_applied():
    with gi.track():
        x = leaf()
        y = Scaled.apply(x, torch.tensor(2.0))
        z = y.sum()
    places = [d["location"] for _, d in gi.graph(z).nodes(data=True)]
    assert [p.source for p in places if p is not None] == ["z = y.sum()", "y = Scaled.apply(x, torch.tensor(2.0))"]


def test_what_was_made_before_has_no_line():
    y = leaf().exp()
    with gi.track():
        z = y.sum()
    assert [d["location"] is None for _, d in gi.graph(z).nodes(data=True)] == [False, True, True]


# --- what is asked of every node --------------------------------------------------------------------------------------

TENSORS = {
    "plain": lambda: torch.arange(6.0).reshape(2, 3),
    "transposed": lambda: torch.arange(6.0).reshape(2, 3).t(),
    "scalar": lambda: torch.tensor(2.0),
    "empty": lambda: torch.ones(0),
    "large": lambda: torch.ones(600, 500),
    "parameter": lambda: torch.nn.Parameter(torch.ones(3)),
    "conjugate": lambda: torch.ones(3, dtype=torch.complex64).conj(),
    "half": lambda: torch.ones(3, dtype=torch.float16),
}


@pytest.mark.parametrize("kind", TENSORS)
def test_checksums_do_not_depend_on_how_saved_tensors_are_read(adapter, kind):
    other = TENSORS[kind]()
    node = (torch.ones(other.shape, dtype=other.dtype, requires_grad=True) * other).grad_fn
    assert adapter.fingerprints(node) == _prints_of_any(node)
    assert len(adapter.fingerprints(node)) == 2 * len(adapter.saved(node)) >= 2


@pytest.mark.parametrize("kind", TENSORS)
def test_a_node_has_its_fingerprints_until_a_value_or_a_version_changes(adapter, kind):
    other = TENSORS[kind]().detach()
    with Sanitizer():
        node = (torch.ones(other.shape, dtype=other.dtype, requires_grad=True) * other).grad_fn
    prints = adapter.fingerprints(node)
    assert prints == _prints_of_any(node) == adapter.fingerprints(node)
    if other.numel():  # else it has no fingerprint
        other.data.zero_()
        zeros = adapter.fingerprints(node)
        other.mul_(1)
        assert len({prints, zeros, adapter.fingerprints(node)}) == 3


class Part:
    """Takes part in modes, as a library's class does."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*args)


def packed(hooks):
    with torch_graph.saved_tensors_hooks(*hooks):
        return leaf().exp().grad_fn


def packed_within_a_call(hooks):
    return torch.overrides.handle_torch_function(packed, [Part()], hooks)


@pytest.mark.parametrize("make", [packed, packed_within_a_call])
def test_fingerprints_run_no_hook_that_unpacks_what_a_node_has_saved(adapter, make):
    require_pytorch(torch, "2.10")  # before it is not shown what is saved without unpacking it
    unpacked = []
    with Sanitizer():
        node = make((torch.clone, unpacked.append))
        assert adapter.fingerprints(node) == UNREAD
    assert unpacked == []


def test_fingerprints_run_no_hook_that_what_is_saved_has_been_given_since(adapter, monkeypatch):
    require_pytorch(torch, "2.10")
    monkeypatch.setattr(late_hooks, "are_there", False)  # for the tests that follow, as if there had been none
    unpacked = []
    with Sanitizer():
        node = leaf().exp().grad_fn
        assert adapter.fingerprints(node) != UNREAD
        node._raw_saved_result.register_hooks(torch.clone, unpacked.append)
        assert adapter.fingerprints(node) == UNREAD
    other = leaf().exp().grad_fn
    other._raw_saved_result.register_hooks(torch.clone, unpacked.append)  # unobserved, as before
    assert unpacked == []


def test_fingerprints_are_taken_without_a_word_to_a_tensors_class(adapter):
    class Told(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            with torch._C._DisableTorchDispatch():
                result = func(*args, **(kwargs or {}))
            return result.as_subclass(cls) if isinstance(result, torch.Tensor) else result

    seen = []
    with Sanitizer():
        leaf().exp()  # a function that has been met is known only to compute
        node = leaf().as_subclass(Told).exp().grad_fn
        before = len(seen)
        assert adapter.fingerprints(node) == UNREAD
    assert len(seen) == before > 0


def test_fingerprints_are_taken_without_a_word_to_a_mode_of_the_program(adapter):
    seen = []

    class Calls(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Sanitizer():
        node = leaf().exp().grad_fn
    expected = adapter.fingerprints(node)
    with Calls():
        assert adapter.fingerprints(node) == expected
    assert seen == []


def test_checksums_of_what_has_been_released_or_packed_are_none(adapter):
    loss = leaf().exp().sum()
    node = loss.grad_fn.next_functions[0][0]
    loss.backward()
    with torch.autograd.graph.save_on_cpu():
        packed = leaf().exp().grad_fn
    assert (adapter.fingerprints(node), adapter.fingerprints(packed)) == (UNREAD, UNREAD)


@pytest.mark.parametrize("kind", TENSORS)
def test_what_a_node_held_is_named_after_it_has_run_too(adapter, kind):
    other = TENSORS[kind]()
    loss = (torch.ones(other.shape, dtype=other.dtype, requires_grad=True) * other).sum()
    node = loss.grad_fn.next_functions[0][0]
    held = adapter.held(node)
    expected = {saved.name: saved.data for saved in adapter.saved(node)}
    torch.autograd.backward(loss, torch.ones_like(loss))
    assert list(held()) == list(expected)
    assert all(held()[name] is expected[name] for name in expected)


def test_what_a_custom_function_or_a_hook_has_saved_is_held_as_it_is_saved(adapter):
    require_pytorch(torch, "2.8")  # 2.4 does not show what is saved without unpacking it
    node = Scaled.apply(leaf(), torch.tensor(2.0)).grad_fn
    assert [tensor.tolist() for tensor in adapter.held(node)().values()] == [2.0]  # of several the last
    with torch.autograd.graph.save_on_cpu():
        packed = leaf().exp().grad_fn
    assert adapter.held(packed)() == {}


def test_the_size_of_what_nodes_have_saved_counts_each_piece_of_memory_once(adapter):
    require_pytorch(torch, "2.8")  # 2.4 does not show what is saved without unpacking it
    x = torch.ones(4, requires_grad=True)
    y = (x * x).exp()
    nodes = [y.grad_fn, y.grad_fn.next_functions[0][0]]
    assert adapter.saved_bytes(nodes) == 2 * 16
    assert adapter.saved_bytes([*nodes, Scaled.apply(x, torch.ones(4)).grad_fn]) == 3 * 16
    sparse = torch.sparse.mm(torch.eye(2).to_sparse(), torch.ones(2, 2, requires_grad=True)).grad_fn
    assert adapter.saved_bytes([sparse]) is None
