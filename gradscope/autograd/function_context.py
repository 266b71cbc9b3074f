"""``ctx``: the node of one call of a user's Function, and what it offers to forward, backward and jvp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..runtime.errors import SavedTensorFreedError
from ..runtime.graph.edges import ends_of
from ..runtime.graph.graph_node import InputMetadata, Node, NodeExtra
from ..runtime.graph.saved_tensors import RELEASED, SavedTensor, check_version, unpack
from ..runtime.memory import device
from ..runtime.memory.dtype import BY_NUMPY
from ..runtime.tensor.tensor import Tensor
from ..runtime.user_warnings import warn

if TYPE_CHECKING:
    from .function import Function

__all__ = ["FunctionCtx", "FunctionNode"]

SAVED = "saved_tensors"


class FunctionCtx:
    """The part of ``ctx`` that the forward of a user's function sees, a base of the node of a :class:`Function`."""

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
        """Do nothing but warn: shared memory is noticed."""
        warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked.",
            FutureWarning,
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
    # Function's own backward and vjp, which say that there is none; function.py fills it in.
    _missing_backward: Any = None

    # The values of attributes that a call does not set.
    to_save = dirty_tensors = non_differentiable = None
    saved_for_forward: tuple[Any, ...] | None = None
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
        """The tensors of ``save_for_backward``, their versions checked; inside ``jvp`` those of ``save_for_forward``.

        Raises
        ------
        SavedTensorModifiedError
            If one has been written in place since forward.
        SavedTensorFreedError
            If the node has run and let go of them.
        """
        if self.saved_for_forward is not None:
            return self.saved_for_forward
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
        warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
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

    def output_specs(self) -> Sequence[tuple[tuple[int, ...], Any]]:
        """Return (shape, NumPy dtype) of each output; a scalar of no dtype for what is no tensor."""
        outputs = self._outputs
        return outputs if None not in outputs else [((), None) if spec is None else spec for spec in outputs]

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
        chosen: list[Any] = []
        for index, result in enumerate(results):
            if result is not None and not isinstance(result, Tensor):
                raise RuntimeError(
                    f"expected Variable or None (got {type(result).__name__})\n"
                    f"It is what {self.node_name} returned for argument {index}; return a tensor."
                )
            if expected[index]:
                if result is not None and result._dtype.kind == "c":
                    self._check_complex(result, index, self.edges[len(chosen)])
                chosen.append(result)
            elif result is not None:
                raise RuntimeError(
                    f"function {self.node_name} returned a gradient different than None at position {index + 1}, but "
                    "the corresponding forward input was not a Variable\nReturn None there."
                )
        return chosen

    def _check_complex(self, result: Tensor, index: int, edge: Any) -> None:
        """Raise for a complex gradient of a real argument."""
        if edge is None:
            return
        node, nr = ends_of(edge)
        if node.output_specs()[nr][1].kind != "c":
            raise RuntimeError(
                f"function {self.node_name} returned a complex gradient ({result.dtype}) for argument {index}, which "
                "is real\nReturn its real part: gradient.real."
            )

    def _call_backward(self, grads: list[Any]) -> Any:
        cls = self._forward_cls
        backward = cls.backward
        if cls.vjp is not self._missing_backward:
            if backward is not self._missing_backward:
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
