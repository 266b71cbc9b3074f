"""User-defined functions: ``Function`` with its own forward and backward.

``Function.apply`` makes the node first and hands it to the user as ``ctx``: what the user stores on ``ctx`` lives as
long as the node, and ``output.grad_fn is ctx``. Instances of a Function (``F(args)(x)``, the style of PyTorch 0.1) are
the business of :mod:`gradscope.autograd.legacy`.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

from ..runtime import device, events, state
from ..runtime.dtype import BY_NUMPY
from ..runtime.errors import SavedTensorFreedError
from ..runtime.graph import (
    RELEASED,
    InputMetadata,
    Node,
    NodeExtra,
    SavedResult,
    SavedTensor,
    check_version,
    pack_slot,
    unpack,
)
from ..runtime.ops import general
from ..runtime.tensor import Tensor
from ..runtime.views import check_view, edge_of, rebase

__all__ = ["Function", "FunctionCtx", "FunctionNode", "InplaceFunction", "once_differentiable"]

C = TypeVar("C", bound=Callable[..., Any])

modes = state.local
_new = object.__new__
next_sequence = state.next_sequence

SAVED = "saved_tensors"


class FunctionCtx:
    """What ``ctx`` offers to the forward of a :class:`Function`."""

    to_save: tuple[Any, ...] | None
    saved_for_forward: tuple[Any, ...] | None
    dirty_tensors: tuple[Any, ...] | None
    non_differentiable: tuple[Any, ...] | None
    materialize_grads: bool

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors (or None) for backward, where ``ctx.saved_tensors`` returns them after the version check.

        Call it at most once. Anything else may be stored as an attribute of `ctx`; inputs and outputs may not: an
        output stored as an attribute is a reference cycle, and neither is checked for in-place writes.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors (or None) for :meth:`Function.jvp`."""
        for index, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes "
                    f"on ctx.\nArgument {index} is of type {type(tensor).__name__}."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs forward has written in place; each must be returned as an output."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient; backward is given zeros for them."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Say whether backward is given zeros (the default) or None for outputs that received no gradient."""
        self.materialize_grads = value

    def mark_shared_storage(self, *pairs: tuple[Tensor, Tensor]) -> None:
        """Do nothing but warn: shared memory is noticed. Instances of 0.1 style give it its old meaning."""
        warnings.warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked.",
            FutureWarning,
            stacklevel=2,
        )


# --- the node ---------------------------------------------------------------------------------------------------------


class _CallableName(str):
    """A ``ctx.name`` that the user set: a string, and still what ``node.name()`` calls."""

    __slots__ = ()

    def __call__(self) -> str:
        return str(self)


def _owned_slot(name: str) -> property:
    """Return a slot of Node as an attribute that a user's ``ctx`` cannot overwrite by accident."""
    slot = Node.__dict__[name]

    def assign(node: FunctionNode, value: Any) -> None:
        if name == "extra" and isinstance(value, NodeExtra):
            slot.__set__(node, value)
            return
        raise AttributeError(
            f"ctx.{name} belongs to the backward graph and cannot be assigned.\n"
            f"Store your value under another name, such as ctx.my_{name}."
        )

    return property(slot.__get__, assign, doc=f"``Node.{name}``.")


_set_edges = Node.__dict__["edges"].__set__
_set_seq = Node.__dict__["seq"].__set__
_set_extra = Node.__dict__["extra"].__set__


class FunctionNode(Node, FunctionCtx):
    """The node of one call of a :class:`Function`; its ``ctx``.

    It receives a list of gradients, one per output, and calls the user's backward on tensors. Node's slots ``shape``,
    ``dtype`` and ``kind`` mean nothing here, so that users may store attributes of these names.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        Whether each argument of forward requires grad.
    """

    multi: Any = property(lambda node: True)
    saved_names = (SAVED,)

    edges = _owned_slot("edges")
    seq = _owned_slot("seq")
    extra = _owned_slot("extra")

    _forward_cls: type[Function]

    # What a call does not set.
    to_save = saved_for_forward = dirty_tensors = non_differentiable = None
    materialize_grads = True
    s_saved_tensors: Any = ()
    v_saved_tensors: Any = ()
    needs_input_grad: tuple[bool, ...] = ()
    _is_tensor: tuple[bool, ...] = ()
    _outputs: tuple[Any, ...] = ()
    _module: Any = device.numpy

    @property
    def name(self) -> Any:
        """Return the name, e.g. ``'ExpBackward'``; a string that the user assigned is returned as it is."""
        return self.__dict__.get("name") or _CallableName(self.node_name)

    @name.setter
    def name(self, value: str) -> None:
        self.__dict__["name"] = _CallableName(value)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What ``save_for_backward`` kept, checked.

        Raises
        ------
        SavedTensorModifiedError
            If one has been written in place since forward.
        SavedTensorFreedError
            If the node has run and let go of them.
        """
        values = self.s_saved_tensors
        if values is RELEASED:
            raise SavedTensorFreedError(self)
        found: list[Tensor | None] = []
        for index, value in enumerate(values):
            if isinstance(value, Tensor):
                counter = value._vc
                if (0 if counter is None else counter.version) != self.v_saved_tensors[index]:
                    check_version(self, SAVED, counter, index, value)
                found.append(value)
            elif value is None:
                found.append(None)
            else:
                found.append(unpack(self, SAVED, as_tensor=True, index=index))
        if values and self._forward_cls.clear_saved_tensors_on_access:
            self.s_saved_tensors = _ClearedOnAccess()
        elif type(values) is _ClearedOnAccess:
            raise RuntimeError(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the "
                "autograd.Function. Either access saved_tensors only once, or set clear_saved_tensors_on_access=False."
            )
        return tuple(found)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of :attr:`saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        if self.s_saved_tensors is RELEASED:
            raise SavedTensorFreedError(self)
        return tuple(SavedTensor(self, SAVED, index) for index in range(len(self.s_saved_tensors)))

    def release(self) -> None:
        """Let go of the saved tensors."""
        if self.s_saved_tensors:
            self.s_saved_tensors = RELEASED

    maybe_clear_saved_tensors = release

    def output_specs(self) -> list[tuple[tuple[int, ...], Any]]:
        """Return (shape, NumPy dtype) of each output; a scalar of no dtype for what is no tensor."""
        return [((), None) if spec is None else spec for spec in self._outputs]

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        place = device.device_of(self._module.empty(0))
        return tuple(InputMetadata(s[0], BY_NUMPY[s[1]], place) for s in self._outputs if s is not None)

    # --- backward ---

    def apply(self, grads: Any) -> Any:
        """Run backward on bare arrays: a list of one per output, or the one of a single output."""
        if type(grads) is not list:
            grads = [grads] if grads is not None else [None] * len(self._outputs)
        results = self._run_backward([g if g is None else _wrap(g) for g in grads])
        return [r if r is None else r._array for r in results]

    def apply_graph(self, grads: Any) -> Any:
        """Run backward on tensors, recorded."""
        if type(grads) is not list:
            grads = [grads] if grads is not None else [None] * len(self._outputs)
        return self._run_backward(list(grads))

    def _run_backward(self, grads: list[Any]) -> list[Any]:
        """Return the user's gradients for the arguments that are tensors, checked."""
        if not grads:
            grads = [None] * len(self._outputs)
        if self.materialize_grads:
            for index, grad in enumerate(grads):
                if grad is None and self._outputs[index] is not None:
                    grads[index] = self._zeros(*self._outputs[index])
        results = self._call_backward(grads)
        if type(results) is not tuple:
            results = (results,)
        expected = self._is_tensor
        if len(results) != len(expected):
            results = self._trimmed(results)
        chosen = []
        for index, result in enumerate(results):
            if result is not None and not isinstance(result, Tensor):
                raise RuntimeError(
                    f"expected Variable or None (got {type(result).__name__})\n"
                    f"It is what {self.node_name} returned for argument {index}; return a tensor."
                )
            if expected[index]:
                chosen.append(result)
            elif result is not None:
                raise RuntimeError(
                    f"function {self.node_name} returned a gradient different than None at position {index + 1}, but "
                    "the corresponding forward input was not a Variable\nReturn None there."
                )
        return chosen

    def _call_backward(self, grads: list[Any]) -> Any:
        cls = self._forward_cls
        backward = cls.backward
        if cls.vjp is not Function.vjp:
            if backward is not Function.backward:
                raise RuntimeError(
                    "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                    "implement one of them."
                )
            backward = cls.vjp
        return backward(self, grads) if cls.boxed_grads_call else backward(self, *grads)

    def _zeros(self, shape: tuple[int, ...], kind: Any) -> Tensor:
        return Tensor._wrap(self._module.zeros(shape, dtype=kind))

    def _trimmed(self, results: tuple[Any, ...]) -> tuple[Any, ...]:
        expected = len(self._is_tensor)
        if len(results) > expected and all(r is None for r in results[expected:]):
            return results[:expected]
        raise RuntimeError(
            f"function {self.node_name} returned an incorrect number of gradients (expected {expected}, got "
            f"{len(results)})\nbackward must return one gradient (or None) for each argument of forward."
        )


class _ClearedOnAccess(tuple):
    """Stands for the saved tensors of a Function that gives them out once."""

    __slots__ = ()


def _wrap(array: Any) -> Tensor:
    # The sum of 0-d arrays is a NumPy scalar.
    return Tensor._wrap(array if device.is_array(array) else device.numpy.asarray(array))


# --- the call ---------------------------------------------------------------------------------------------------------


def begin(node: FunctionNode, args: Iterable[Any]) -> bool:
    """Give `node` its edges; return whether the call is to be recorded."""
    needs, is_tensor, tensors, flags = [], [], [], 0
    for value in args:
        if isinstance(value, Tensor):
            flags |= value._flags
            needs.append(value.requires_grad)
            is_tensor.append(True)
            tensors.append(value)
        else:
            needs.append(False)
            is_tensor.append(False)
    node.needs_input_grad = tuple(needs)
    node._is_tensor = tuple(is_tensor)
    _set_seq(node, next_sequence())
    _set_extra(node, None)
    recorded = modes.grad_enabled and not flags & state.VOLATILE and True in needs
    if recorded:
        _set_edges(
            node, tuple([edge_of(t) if t.requires_grad or t._flags & state.STOCHASTIC else None for t in tensors])
        )
    else:
        _set_edges(node, (None,) * len(tensors))
    return recorded


def finish(node: FunctionNode, args: tuple[Any, ...], raw: Any, recorded: bool) -> Any:
    """Hang the outputs of forward on `node`, save what it asked to save, and return them."""
    if recorded and type(raw) is Tensor and raw._view is None and _is_common(node, args, raw):
        return _finish_common(node, raw)
    outputs = list(raw) if isinstance(raw, tuple) else [raw]
    specs: list[Any] = []
    for output in outputs:
        if isinstance(output, Tensor):
            array = output._array
            specs.append((array.shape, array.dtype))
            if type(array) is not device.ndarray:
                node._module = device.array_module(array)
        else:
            specs.append(None)
    node._outputs = tuple(specs)
    dirty = _bumped(node)
    differentiable = 0
    for index, output in enumerate(outputs):
        if not isinstance(output, Tensor):
            continue
        is_input = any(output is value for value in args)
        is_dirty = any(output is value for value in dirty)
        takes_grad = recorded and output._array.dtype.kind in "fc" and not _among(output, node.non_differentiable)
        output = outputs[index] = _link(node, output, index, is_input, is_dirty, takes_grad, len(outputs))
        differentiable += takes_grad
        if output._view is not None and not (is_input and is_dirty):
            _mark_view(node, output, index)
    if differentiable > 1:
        for output in outputs:
            if isinstance(output, Tensor) and output._view is not None and not _among(output, dirty):
                output._view.creation = "multi"
    for tensor in dirty:
        if not _among(tensor, outputs):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that "
                f"are modified inplace must all be outputs of the Function.\n{node.node_name} wrote a tensor of shape "
                f"{list(tensor.shape)}: return it from forward."
            )
    if recorded:
        if node.to_save:
            _save(node, node.to_save)
    elif any(isinstance(value, Tensor) and value._flags & state.VOLATILE for value in args):
        for output in outputs:
            if isinstance(output, Tensor):
                output._flags |= state.VOLATILE
    # They would hold outputs, which hold the node.
    if node.to_save is not None:
        node.to_save = None
    if dirty:
        node.dirty_tensors = None
    if node.non_differentiable is not None:
        node.non_differentiable = None
    if state.special:
        _instrument(node, args, [o for o in outputs if isinstance(o, Tensor)], recorded)
    return tuple(outputs) if isinstance(raw, tuple) else outputs[0]


def _is_common(node: FunctionNode, args: tuple[Any, ...], output: Tensor) -> bool:
    """Whether forward returned one new tensor on the CPU, marked nothing, and nobody looks."""
    if state.special or node.dirty_tensors is not None or node.non_differentiable is not None:
        return False
    for value in args:
        if value is output:
            return False
    array = output._array
    return type(array) is device.ndarray and array.dtype.kind in "fc"


def _finish_common(node: FunctionNode, output: Tensor) -> Tensor:
    array = output._array
    node._outputs = ((array.shape, array.dtype),)
    output._set_edge((node, 0))
    if node.to_save is not None:
        _save(node, node.to_save)
        node.to_save = None
    return output


def _among(tensor: Any, tensors: Iterable[Any] | None) -> bool:
    return tensors is not None and any(tensor is other for other in tensors)


def _bumped(node: FunctionNode) -> tuple[Any, ...]:
    """Return the tensors that forward marked as written, each counted as written once more."""
    marked: tuple[tuple[str, Any], ...] = (
        ("mark_dirty", node.dirty_tensors),
        ("mark_non_differentiable", node.non_differentiable),
    )
    for kind, tensors in marked:
        for index, tensor in enumerate(tensors or ()):
            if not isinstance(tensor, Tensor):
                raise RuntimeError(
                    f"{kind} can only accept variables, but argument {index} is of type {type(tensor).__name__}"
                )
    dirty = node.dirty_tensors or ()
    for tensor in dirty:
        tensor._bump(node._forward_cls.__name__)
    return dirty


def _link(
    node: FunctionNode, output: Tensor, index: int, is_input: bool, is_dirty: bool, takes_grad: bool, count: int
) -> Tensor:
    """Return the output as the caller gets it, with its history."""
    if not takes_grad:
        if is_input and not is_dirty and not output.requires_grad:
            return _view_as_self(node, output)
        if output.requires_grad and is_input:
            return output.detach()
        if output.requires_grad and output._view is None:
            output.detach_()
        return output
    if is_dirty:
        _take_over(node, output, index, is_input, count)
        return output
    if is_input:
        output = _view_as_self(node, output)
    output._set_edge((node, index))
    return output


def _take_over(node: FunctionNode, output: Tensor, index: int, is_input: bool, count: int) -> None:
    """Rebase the history of an input that forward wrote in place."""
    view = output._view
    if output.requires_grad and view is None and output.is_leaf:
        raise RuntimeError(
            "a leaf Variable that requires grad has been used in an in-place operation.\n"
            f"{node.node_name} wrote it (shape {list(output.shape)}); give it a clone()."
        )
    if not is_input:
        warnings.warn(
            "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated "
            "should be passed to ctx.mark_dirty().",
            stacklevel=5,
        )
    if view is None:
        output._set_edge((node, index))
        return
    if count > 1:
        raise RuntimeError(
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return "
            "more than one Tensor. This is not supported by the current autograd engine. You should either make sure "
            "the input is not a view (using .clone() for example) or make your Function only return one Tensor."
        )
    check_view(output, view)
    rebase(output, node)


def _view_as_self(node: FunctionNode, tensor: Tensor) -> Tensor:
    view = Tensor._wrap(tensor._array.view())
    tensor._make_view(view, "custom", node._forward_cls.__name__)
    return view


def _mark_view(node: FunctionNode, output: Tensor, index: int) -> None:
    view = output._view
    assert view is not None
    view.creation, view.operator, view.output_nr = "custom", node._forward_cls.__name__, index


def _save(node: FunctionNode, tensors: tuple[Any, ...]) -> None:
    """Fill the saved slot: outputs without their tensor, which would be a cycle; the rest with their version."""
    values: list[Any] = []
    versions: list[int] = []
    for index, tensor in enumerate(tensors):
        if tensor is None:
            values.append(None)
            versions.append(0)
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {index} is of type {type(tensor).__name__}\n"
                "Store it as an attribute of ctx."
            )
        if tensor._flags & state.INFERENCE:
            general.refuse_inference(node, tensor)
        edge = tensor._edge if tensor._view is None else tensor._view.edge
        if edge is not None and edge[0] is node:
            counter = tensor._counter()
            values.append(SavedResult(tensor._array, counter, edge[1]))
            versions.append(counter.version)
        else:
            values.append(tensor)
            versions.append(0 if tensor._vc is None else tensor._vc.version)
    if state.special and modes.saved_hooks:
        hooks = modes.saved_hooks[-1]
        values = [pack_slot(node, SAVED, value, hooks) for value in values]
    node.s_saved_tensors = values
    node.v_saved_tensors = versions


def _instrument(node: FunctionNode, args: tuple[Any, ...], outputs: list[Tensor], recorded: bool) -> None:
    """Do what listeners, anomaly mode and inference mode ask of a call."""
    if modes.inference:
        for output in outputs:
            output._mark_inference()
    if recorded:
        general.annotate(node)
        if events.wanted(events.TensorSaved):
            general.announce_saved(node)
    if events.wanted(events.OperatorRecorded):
        site = node.call_site if recorded else events.call_site_if_wanted()
        inputs = tuple(value for value in args if isinstance(value, Tensor))
        name = node._forward_cls.__name__
        events.emit(events.OperatorRecorded(node if recorded else None, name, inputs, tuple(outputs), site))


# --- Function ---------------------------------------------------------------------------------------------------------


class FunctionMeta(type):
    """Makes, with each Function, the class of its nodes."""

    def __init__(cls, name: str, bases: tuple[type, ...], attributes: dict[str, Any]) -> None:
        super().__init__(name, bases, attributes)
        cls._backward_cls = type(
            name + "Backward",
            (FunctionNode,),
            {"_forward_cls": cls, "node_name": name + "Backward", "__module__": cls.__module__, "__doc__": None},
        )
        cls._forward_cls = cls


class Function(FunctionNode, metaclass=FunctionMeta):
    """Base of functions with a derivative of their own: write `forward` and `backward`, call :meth:`apply`.

    Examples
    --------
    >>> import gradscope as gs
    >>> class Exp(gs.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         result = x.exp()
    ...         ctx.save_for_backward(result)
    ...         return result
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         (result,) = ctx.saved_tensors
    ...         return grad_output * result
    >>> x = gs.tensor([0.0, 1.0], requires_grad=True)
    >>> y = Exp.apply(x)
    >>> y.grad_fn.name()
    'ExpBackward'
    >>> y.sum().backward()
    >>> x.grad
    tensor([1.0000, 2.7183])
    """

    _backward_cls: type[FunctionNode]

    generate_vmap_rule = False
    clear_saved_tensors_on_access = False
    boxed_grads_call = False

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return an instance in the style of PyTorch 0.1; functions with static methods need none."""
        from .legacy import new_instance

        return new_instance(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take whatever a 0.1-style function is made with; those that have parameters override this."""

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs: ``forward(ctx, *args)``, or ``forward(*args)`` beside a :meth:`setup_context`.

        Nothing it does is recorded. Arguments may be anything; only tensors have gradients.
        """
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what backward needs, when forward takes no `ctx`."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradient (or None) of each argument of forward, given those of its outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangent of each output, given those of the inputs (forward mode)."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward on `args` and record it as one node."""
        separate = cls.setup_context is not _NO_SETUP
        if kwargs or separate:
            args, kwargs = _bound(cls, args, kwargs, separate)
        inputs = (*args, *kwargs.values()) if kwargs else args
        node: FunctionNode = _new(cls._backward_cls)
        recorded = begin(node, inputs)
        before = modes.grad_enabled
        modes.grad_enabled = False
        try:
            if separate:
                raw = cls.forward(*args)
                cls.setup_context(node, args, raw)
            else:
                raw = cls.forward(node, *args, **kwargs)
            return finish(node, inputs, raw, recorded)
        finally:
            modes.grad_enabled = before

    def __call__(self, *inputs: Any) -> Any:
        """Run forward of an instance in the style of PyTorch 0.1."""
        from .legacy import call_instance

        return call_instance(self, inputs)


_NO_SETUP = Function.setup_context


def _bound(cls: type[Function], args: Any, kwargs: dict[str, Any], separate: bool) -> tuple[Any, dict[str, Any]]:
    """Return arguments with forward's defaults filled in, as PyTorch does beside a setup_context."""
    if not separate:
        return args, kwargs
    bound = inspect.signature(cls.forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args, bound.kwargs


class InplaceFunction(Function):
    """A Function that can write its input, as its instances of 0.1 style say.

    Parameters
    ----------
    inplace : bool
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


# --- once_differentiable ----------------------------------------------------------------------------------------------


class DelayedError(Node):
    """A node that raises when a gradient arrives."""

    __slots__ = ("message",)

    node_name = "DelayedError"
    message: str

    def apply(self, grad: Any) -> NoReturn:
        raise RuntimeError(self.message)

    apply_graph = apply


def once_differentiable(backward: C) -> C:
    """Decorate a ``backward`` that cannot itself be differentiated: doing so then raises instead of being wrong."""

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        recording = modes.grad_enabled
        modes.grad_enabled = False
        try:
            outputs = backward(ctx, *grads)
        finally:
            modes.grad_enabled = recording
        if not recording or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return outputs
        message = "trying to differentiate twice a function that was marked with @once_differentiable"
        return delay_error(message, outputs)

    return wrapper  # type: ignore[return-value]


def delay_error(message: str, outputs: Any) -> tuple[Any, ...]:
    """Return aliases of gradients whose own differentiation raises `message`."""
    results = []
    for output in outputs if isinstance(outputs, tuple) else (outputs,):
        if isinstance(output, Tensor):
            output = output.detach()
            array = output._array
            node = DelayedError()
            node.edges, node.seq, node.extra = (), next_sequence(), None
            node.shape, node.dtype, node.kind = array.shape, array.dtype, type(array)
            node.message = message
            output._set_edge((node, 0))
        results.append(output)
    return tuple(results)
