"""What nodes save: packed and unpacked tensors, the check of their version, and its error."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from .. import dispatch, events, state
from ..errors import SavedTensorFreedError, SavedTensorModifiedError
from ..memory import device
from ..memory.dtype import BY_NUMPY, INEXACT
from ..memory.storage import VersionCounter
from ..tensor.math_bits import share_bits
from .edges import ACCUMULATE_SEQUENCE, Edge, edge_to, ends_of, own_edge

if TYPE_CHECKING:
    from .graph_node import Node

__all__ = [
    "RELEASED",
    "PackedTensor",
    "SavedPart",
    "SavedResult",
    "SavedTensor",
    "check_version",
    "is_saved",
    "pack_slot",
    "saved_version",
    "unpack",
]


class _Released:
    """Stands in a saved slot after its node has run."""

    def __repr__(self) -> str:
        return "<released>"


RELEASED: Any = _Released()


class SavedResult:
    """A saved output: the array and its counter, but not the tensor, which would be a cycle."""

    __slots__ = ("array", "counter", "nr")

    history: weakref.ref[Any] | None = None

    def __init__(self, array: Any, counter: VersionCounter, nr: int) -> None:
        self.array = array
        self.counter = counter
        self.nr = nr

    def restore(self, tensor: Any) -> None:
        """Give `tensor`, which stands for the output again, what else is known of it."""


class SavedPart(SavedResult):
    """A saved output that was written into a view.

    Gradients of it go to the CopySlices of the base, which runs the node that saved it: `history` refers to that
    CopySlices weakly.
    """

    __slots__ = ("history",)

    history: weakref.ref[Any] | None

    def __init__(self, array: Any, counter: VersionCounter, nr: int, history: weakref.ref[Any]) -> None:
        super().__init__(array, counter, nr)
        self.history = history


class PackedTensor:
    """The result of a pack hook on a saved tensor, and the hook that undoes it."""

    __slots__ = (
        "dtype", "edge", "forward", "history", "is_output", "nr", "packed", "requires_grad", "shape", "unpack_hook",
    )  # fmt: skip

    def __init__(self, tensor: Any, hooks: tuple[Any, Any], result: SavedResult | None) -> None:
        array = tensor._array
        self.shape, self.dtype = array.shape, array.dtype
        self.is_output = is_output = result is not None
        self.nr = 0 if result is None else result.nr
        self.history = None if result is None else result.history
        self.requires_grad = tensor.requires_grad
        # What is unpacked leads where the tensor led; of its own result a node keeps no edge, which would be a cycle.
        self.edge = dispatch.edge_of(tensor) if self.requires_grad and not is_output else None
        self.forward = None if tensor._meta is None else tensor._meta.forward
        self.unpack_hook = hooks[1]
        self.packed = hooks[0](tensor)

    @property
    def nbytes(self) -> int:
        """Bytes of the tensors in what the hook has made: a checkpoint keeps none."""
        return _bytes_in(self.packed)


def _bytes_in(packed: Any) -> int:
    if isinstance(packed, (tuple, list)):
        return sum(map(_bytes_in, packed))
    return packed.nbytes if hasattr(packed, "_array") else 0


def is_saved(value: Any) -> bool:
    """Whether a saved slot holds a tensor (and not a number, a shape or nothing)."""
    return (
        isinstance(value, (SavedResult, PackedTensor, device.ndarray))
        or hasattr(value, "_array")
        or (device.is_array(value))
    )


class SavedTensor:
    """A look at one saved tensor of a node; holding it keeps only the node alive.

    Attributes
    ----------
    name : str
        Under which name the node saved it.

    See Also
    --------
    saved_tensors_hooks

    Examples
    --------
    >>> import gradscope as gs
    >>> a, b = gs.ones(2, requires_grad=True), gs.ones(2, requires_grad=True)
    >>> y = a * b
    >>> [(saved.name, saved.shape, saved.released) for saved in y.grad_fn.saved_tensors_info()]
    [('other', (2,), False), ('self', (2,), False)]
    >>> y.sum().backward()
    >>> y.grad_fn.saved_tensors_info()[0].released
    True
    """

    __slots__ = ("index", "name", "node")

    def __init__(self, node: Node, name: str, index: int | None = None) -> None:
        self.node = node
        self.name = name
        self.index = index

    def _value(self) -> Any:
        value = getattr(self.node, "s_" + self.name)
        return value[self.index] if self.index is not None and isinstance(value, list) else value

    @property
    def released(self) -> bool:
        """Whether the node has run and let go of it."""
        return self._value() is RELEASED

    @property
    def is_output(self) -> bool:
        """Whether it is a result of the node's own operator."""
        return isinstance(self._value(), SavedResult) or getattr(self._value(), "is_output", False)

    def _array(self) -> Any:
        value = self._value()
        if isinstance(value, SavedResult):
            return value.array
        return getattr(value, "_array", value)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape, or None once released."""
        return None if self.released else tuple(self._array().shape)

    @property
    def dtype(self) -> Any:
        """The dtype, or None once released."""
        return None if self.released else BY_NUMPY[self._array().dtype]

    @property
    def nbytes(self) -> int:
        """Bytes of the elements; 0 once released; of what a hook has packed, bytes of what it keeps."""
        return 0 if self.released else int(self._array().nbytes)

    @property
    def saved_version(self) -> int | None:
        """The version at which it was saved; None where no version is kept (released, packed by a hook)."""
        return None if self.current_version is None else saved_version(self.node, self.name, self.index)

    @property
    def current_version(self) -> int | None:
        """The version its memory is at now; None where no version is kept."""
        value = self._value()
        if isinstance(value, SavedResult):
            return value.counter.version
        if hasattr(value, "_array") and hasattr(value, "_vc"):
            return 0 if value._vc is None else value._vc.version
        return None

    @property
    def requires_grad(self) -> bool:
        """Whether the tensor that was saved requires grad; False for a result, and for what a hook has packed."""
        return bool(getattr(self._value(), "requires_grad", False))

    @property
    def data(self) -> Any:
        """The value as a detached tensor, stale or not, without the version check; what a hook has packed as it is.

        Raises
        ------
        SavedTensorFreedError
            If it has been released.
        """
        if self.released:
            raise SavedTensorFreedError(self.node)
        value = self._value()
        if isinstance(value, PackedTensor):
            return value.packed
        if hasattr(value, "_memory"):
            return share_bits(dispatch.tensor_type._wrap(value._memory), value)
        return dispatch.tensor_type._wrap(self._array())

    @property
    def unpack_hook(self) -> Any:
        """The hook that unpacks it; None if no hook has packed it."""
        return getattr(self._value(), "unpack_hook", None)

    def unpack(self) -> Any:
        """Return the tensor as the node will see it, with the version check.

        Raises
        ------
        SavedTensorModifiedError
            If it has been written since it was saved.
        SavedTensorFreedError
            If it has been released.
        """
        return unpack(self.node, self.name, as_tensor=True, index=self.index)

    def violation(self) -> SavedTensorModifiedError | None:
        """Return the error that unpacking would raise for a write since it was saved; None when there was none."""
        value, current = self._value(), self.current_version
        if current is None or current == self.saved_version:
            return None
        counter = value.counter if isinstance(value, SavedResult) else value._vc
        tensor = None if isinstance(value, SavedResult) else value
        expected = saved_version(self.node, self.name, self.index)
        return _modified_error(self.node, self.name, self.index, current, expected, counter, tensor)

    @property
    def memory(self) -> Any:
        """The array behind it, stale or not; of a tensor that is lazily conjugated or negated, what lies in memory."""
        value = self._value()
        return value._memory if hasattr(value, "_memory") else self._array()

    @property
    def counter(self) -> VersionCounter:
        """The version counter of its memory."""
        value = self._value()
        return value.counter if isinstance(value, SavedResult) else value._counter()

    def register_hooks(self, pack_hook: Any, unpack_hook: Any) -> None:
        """Replace the saved value by ``pack_hook(value)``; ``unpack_hook`` undoes it when the node runs."""
        value = self._value()
        if value is RELEASED:
            raise SavedTensorFreedError(self.node)
        if isinstance(value, PackedTensor):
            raise RuntimeError(
                "Setting hooks on a saved tensor that already has hooks is not allowed: "
                f"{self.node.name()}.{self.name} is packed."
            )
        packed = pack_slot(self.node, self.name, value, (pack_hook, unpack_hook))
        if self.index is None:
            setattr(self.node, "s_" + self.name, packed)
        else:
            getattr(self.node, "s_" + self.name)[self.index] = packed

    def __repr__(self) -> str:
        what = "released" if self.released else f"{self.dtype} {list(self.shape or ())}"
        return f"<SavedTensor {self.name} of {self.node.name()}: {what}>"


def saved_version(node: Node, name: str, index: int | None) -> int:
    """Return the version recorded when `node` saved `name`: 0 where none was, as the memory had no counter then."""
    version = getattr(node, "v_" + name, 0)
    return version[index or 0] if isinstance(version, list) else version


def unpack(node: Node, name: str, *, as_tensor: bool, index: int | None = None) -> Any:
    """Return what `node` saved as `name`, as an array or a tensor, after the version check."""
    value = getattr(node, "s_" + name)
    if value is RELEASED:
        raise SavedTensorFreedError(node)
    if index is not None:
        value = value[index]
    elif isinstance(value, list):
        return [unpack(node, name, as_tensor=as_tensor, index=i) for i in range(len(value))]
    if isinstance(value, PackedTensor):
        return _unpack_packed(node, value, as_tensor)
    if isinstance(value, SavedResult):
        check_version(node, name, value.counter, index, None)
        return _result_tensor(node, value) if as_tensor else value.array
    if hasattr(value, "_array"):
        check_version(node, name, value._vc, index, value)
        if not as_tensor:
            return value._array
        _check_attached(node, name, value)
        return value
    if as_tensor and device.is_array(value):
        return dispatch.tensor_type._wrap(value)
    return value


def _check_attached(node: Node, name: str, tensor: Any) -> None:
    """Raise where detach_() has cut the history that a saved tensor had: a second derivative would miss that part."""
    if tensor._meta is not None and tensor._meta.detached_at > node.seq:
        raise RuntimeError(
            "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(): "
            f"'{name}' of {node.name()}, of shape {list(tensor.shape)}.\n"
            "This is not supported, please use out-of-place `.detach()` instead."
        )


def _unpack_packed(node: Node, value: PackedTensor, as_tensor: bool) -> Any:
    tensor = value.unpack_hook(value.packed)
    if not hasattr(tensor, "_array"):
        raise TypeError(
            f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(tensor).__name__}"
        )
    if not as_tensor:
        return tensor._array
    if value.is_output:
        tensor = _attach(tensor._array, tensor._counter(), _result_edge(node, value))
    elif value.edge is not None or tensor.requires_grad:
        tensor = _attach(tensor._array, tensor._counter(), value.edge)
    if value.forward is not None:
        tensor._extras().forward = value.forward
    return tensor


def _result_tensor(node: Node, value: SavedResult) -> Any:
    tensor = _attach(value.array, value.counter, _result_edge(node, value))
    value.restore(tensor)
    return tensor


def _result_edge(node: Node, value: SavedResult | PackedTensor) -> Edge | None:
    """Return where gradients of a saved output go: to its node, or to the node that runs it on a part of a base.

    They go nowhere where the output is not differentiable.
    """
    if value.nr >= len(node.output_specs()):
        return None
    history = None if value.history is None else value.history()
    return edge_to(node, value.nr) if history is None else history.part_edge()


def _attach(array: Any, counter: VersionCounter, edge: Edge | None) -> Any:
    """Return a tensor whose gradient goes along an edge; None for nowhere."""
    tensor = dispatch.tensor_type._wrap(array)
    tensor._vc = counter
    if edge is not None and array.dtype.kind in INEXACT:
        tensor._edge = edge
        tensor._flags = state.GRAD
    return tensor


def check_version(node: Node, name: str, counter: VersionCounter | None, index: int | None, tensor: Any) -> None:
    """Raise when the memory behind a saved tensor is no longer at the version it was saved at."""
    current = 0 if counter is None else counter.version
    expected = saved_version(node, name, index)
    if current == expected:
        return
    error = _modified_error(node, name, index, current, expected, counter, tensor)
    if state.special and events.wanted(events.VersionViolation):
        events.emit(events.VersionViolation(error))
    raise error


def _modified_error(
    node: Node, name: str, index: int | None, current: int, expected: int, counter: Any, tensor: Any
) -> SavedTensorModifiedError:
    saved = SavedTensor(node, name, index)
    producer, nr = (node, saved._value().nr) if saved.is_output else (None, 0)
    if tensor is not None:
        # grad_fn would make the edge of a stale view anew, or raise where that is not allowed.
        edge = own_edge(tensor) if tensor._view is None else tensor._view.edge
        if edge is not None and ends_of(edge)[0].seq != ACCUMULATE_SEQUENCE:
            producer, nr = ends_of(edge)
    kind = saved.dtype
    origin = f", which is output {nr} of {producer.name()}," if producer is not None else ""
    writes = [w for w in (counter.writes or ()) if w.version > expected] if counter is not None else []
    lines = [
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[gradscope.{kind.legacy_name} {list(saved.shape or ())}]{origin} is at version {current}; expected version "
        f"{expected} instead. {node.name()} saved it as `{name}`" + _at(node.call_site) + ".",
    ]
    lines.extend(f"It was written by {w.operator}{_at(w.call_site)} (version {w.version})." for w in writes)
    if writes:
        lines.append("Use the out-of-place form of that operation, or give it a clone().")
    else:
        lines.append(
            "Hint: enable anomaly detection to see which lines saved and wrote it, with "
            "gradscope.autograd.set_detect_anomaly(True), or run `gradscope check` on the script."
        )
    return SavedTensorModifiedError(
        "\n".join(lines),
        node=node,
        operator=node.name(),
        saved_name=name,
        shape=saved.shape,
        dtype=kind,
        producer=producer.name() if producer is not None else None,
        saved_version=expected,
        current_version=current,
        saved_at=node.call_site,
        writes=writes,
    )


def _at(site: Any) -> str:
    frame = site.user_frame() if site is not None else None
    return f" at {frame.filename}:{frame.lineno} ({site.source_line})" if frame else ""


def pack_slot(node: Node, name: str, value: Any, hooks: tuple[Any, Any]) -> Any:
    """Return the packed form of one saved value; a pack hook may not write to it."""
    result = None
    if isinstance(value, SavedResult):
        result, tensor = value, dispatch.tensor_type._wrap(value.array)
        tensor._vc = value.counter
        value.restore(tensor)
    elif hasattr(value, "_array"):
        tensor = value
    elif device.is_array(value):
        tensor = dispatch.tensor_type._wrap(value)
    else:
        return value
    node.extras()  # its hook must find the thread's modes as a backward sets them
    before = tensor._version
    packed = PackedTensor(tensor, hooks, result)
    if tensor._version != before:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can "
            f"not be modified by in-place operations as this can lead to unexpected side-effects ({node.name()} was "
            f"saving `{name}`).\nClone the tensor in the hook before you write to it."
        )
    return packed
