"""What tensors, nodes and backward() have of PyTorch 0.1."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gradscope as gs
from gradscope import autograd
from gradscope.autograd import Variable
from gradscope.autograd.v01 import tensor_attributes
from gradscope.runtime.graph.graph_node import Node
from gradscope.runtime.late_attributes import ATTACHED


def leaf(*values):
    return Variable(gs.tensor(list(values) or [1.0, 2.0, 3.0]), requires_grad=True)


def test_volatile_can_be_set_on_leaves():
    x = gs.ones(2)
    x.volatile = True
    assert (x * leaf(1.0, 2.0)).volatile
    x.volatile = False
    assert (x * leaf(1.0, 2.0)).requires_grad
    with pytest.raises(RuntimeError, match="volatile can only be set on leaf variables"):
        (leaf() * 2).volatile = True


def test_creator_and_previous_functions():
    x = leaf()
    y = (x * x).sum()
    assert y.creator is y.grad_fn
    assert x.creator is None
    (multiplication, number), *_ = y.creator.previous_functions
    assert (multiplication.name(), number) == ("MulBackward0", 0)
    assert multiplication.previous_functions[0][0].variable is x


def test_old_keywords_of_backward():
    x = leaf()
    y = x * x
    y.backward(gs.ones(3), retain_variables=True)
    autograd.backward(variables=[y], grad_variables=[gs.ones(3)], retain_variables=False)
    assert x.grad.tolist() == [4.0, 8.0, 12.0]
    with pytest.raises(gs.SavedTensorFreedError):
        y.backward(gs.ones(3))


def test_every_tensor_has_the_attributes_of_the_founding_documents():
    code = """
import gradscope as gs, sys
assert "gradscope.autograd" not in sys.modules
x = gs.ones(2, 3, requires_grad=True)
y = x * 2
y.sum().backward()
assert x.name is None and x.names == (None, None) and gs.ones(()).names == ()
assert x.volatile is False and x._grad is x.grad and x._grad_fn is None and y._grad_fn is y.grad_fn is y.creator
assert isinstance(x._cdata, int) and x._cdata == x._cdata != y._cdata
assert x._backward_hooks is None and y._backward_hooks is None
hook = lambda grad: None
for tensor in (x, y):
    tensor.register_hook(hook)
    assert list(tensor._backward_hooks.values()) == [hook]
for place in ("vulkan", "mlc", "ipu", "xla", "maia", "mps", "xpu", "mtia"):
    assert getattr(x, "is_" + place) is False
assert y.grad_fn.previous_functions == y.grad_fn.next_functions
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("owner", "definitions"),
    [(gs.Tensor, tensor_attributes.TensorAttributes), (Node, tensor_attributes.NodeAttributes)],
)
def test_the_face_of_the_package_names_every_attribute(owner, definitions):
    defined = {name for name in vars(definitions) if not name.startswith("__")}
    assert set(ATTACHED[owner]) == defined
    assert all(hasattr(owner, name) for name in defined)


def test_draws_do_not_depend_on_what_was_imported():
    code = """
import gradscope as gs, sys
draw = gs.tensor([0.5, 0.5], requires_grad=True).multinomial()
draw.reinforce(1.0)
assert draw.creator.name() == "Multinomial"
assert gs.tensor([0.5, 0.5], requires_grad=True).multinomial(1).creator is None
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_keywords_are_refused_under_the_public_name():
    x = leaf()
    for call in (
        lambda: x.sum().backward(retain=True),
        lambda: autograd.backward(x.sum(), retain=True),
        lambda: x.multinomial(1, retain=True),
    ):
        with pytest.raises(
            TypeError, match=r"^(backward|multinomial)\(\) got an unexpected keyword argument 'retain'$"
        ):
            call()


def test_subclasses_have_the_attributes():
    class Named(gs.Tensor):
        pass

    x = gs.ones(2).as_subclass(Named)
    x.volatile = True
    assert (x.volatile, (x * 2).volatile, x.creator) == (True, True, None)
