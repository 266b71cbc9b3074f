"""Tensor: a bare array and what autograd knows of it.

Arithmetic and all other operators are added to the class from their declarations in :mod:`gradscope.runtime.ops`. The
gradient and the hooks are in :mod:`.gradient_holder`, numbers, NumPy arrays, text, copies and pickles in
:mod:`.conversions`.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, ClassVar

import numpy

from .. import dispatch, events, state
from ..dispatch import OPERATORS, PUBLIC
from ..graph.accumulate_grad import AccumulateGrad
from ..graph.edges import Edge, ends_of, hold_edge, own_edge
from ..graph.graph_node import Node
from ..memory import device as devices
from ..memory import dtype as dtypes
from ..memory.bfloat16 import marked
from ..memory.memory_format import check_memory, contiguous_format, preserve_format
from ..memory.storage import Storage, VersionCounter, element_strides, offset_of, shared_shape
from . import overrides
from .conversions import Convertible
from .gradient_holder import GradientHolder, TensorMeta
from .inplace_checks import check_inplace
from .math_bits import mark, share_bits, without_bits
from .views import RereadView, ViewInfo, current_view_edge, rebase, strided_step

if TYPE_CHECKING:
    from ..ops.interface import TensorMethods
else:

    class TensorMethods:
        """The operators' methods, which :func:`.dispatch.fill` adds; type checkers read them in ``interface.pyi``."""

        __slots__ = ()


__all__ = ["Size", "Tensor"]

_new = object.__new__


class Size(tuple):
    """A shape; a tuple with :meth:`numel`.

    See Also
    --------
    Tensor.size

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.Size([2, 3]).numel()
    6
    """

    __slots__ = ()

    def numel(self) -> int:
        """Return the number of elements."""
        count = 1
        for size in self:
            count *= size
        return count

    def __repr__(self) -> str:
        return f"gradscope.Size({list(self)})"


class Tensor(TensorMethods, GradientHolder, Convertible):
    """A multi-dimensional array that remembers how it was computed.

    Make one with :func:`gradscope.tensor`, :func:`gradscope.zeros`, :func:`gradscope.from_numpy` and the like.

    Parameters
    ----------
    *data : int or array_like
        Sizes of an uninitialised tensor, or nested lists, as PyTorch's legacy constructor takes them.

    Attributes
    ----------
    grad : Tensor or None
        What backward() accumulated; of leaves, and of tensors that called :meth:`retain_grad`.
    grad_fn : Node or None
        The node that computed the tensor; None for leaves.

    See Also
    --------
    gradscope.nn.Parameter : a leaf that a module counts among its parameters.

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.tensor([1.0, 2.0], requires_grad=True)
    >>> y = (x * x).sum()
    >>> y
    tensor(5., grad_fn=<SumBackward0>)
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    >>> gs.Tensor(2, 3).shape
    gradscope.Size([2, 3])
    """

    __slots__ = ("__dict__", "__weakref__", "_array", "_dtype", "_edge", "_flags", "_meta", "_shape", "_vc", "_view")

    # The elements, and the memory that they lie in: two names of one slot, but for tensors with a bit (math_bits.py).
    _array: Any
    _memory: Any
    _conjugated: ClassVar[bool] = False
    _negated: ClassVar[bool] = False
    # The dtype is the array's, like the shape; it is kept here because an array takes long to tell it.
    _dtype: Any
    _edge: Edge | None
    _flags: int
    _meta: TensorMeta | None
    _shape: tuple[int, ...]
    _vc: VersionCounter | None
    _view: ViewInfo | None

    __array_priority__ = 1000
    __hash__ = object.__hash__

    def __new__(cls, *data: Any, device: Any = "cpu") -> Tensor:
        """Make a tensor as PyTorch's legacy constructor does: of sizes, of a sequence, or another view of a tensor."""
        if len(data) == 1 and isinstance(data[0], Tensor):
            return OPERATORS["alias"].function(data[0]) if cls is Tensor else cls._sharing(data[0])
        if len(data) == 1 and isinstance(data[0], str):
            raise TypeError("new(): invalid data type 'str'\nTensors hold numbers only.")
        if len(data) == 1 and not isinstance(data[0], (int, Size)):
            if not hasattr(data[0], "__len__"):
                raise TypeError(f"new(): data must be a sequence (got {type(data[0]).__name__})\nUse tensor().")
            made = PUBLIC["tensor"](data[0], dtype=dtypes.get_default_dtype(), device=device)
        else:
            made = PUBLIC["zeros"](shape_of(data, "new") if data else (0,), device=device)
        return made if cls is Tensor else cls._sharing(made)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        overrides.take_part(cls, Tensor)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Override a call with an instance of a subclass: make it, and give its results the subclass.

        Parameters
        ----------
        func : callable
            The function or method that was called.
        types : sequence of type
            The classes among the arguments that take part; with one that is no base of this one it is left to others.

        Raises
        ------
        TypeError
            If the function is PyTorch's, which cannot compute with this tensor.
        """
        if overrides.is_of_pytorch(func):
            raise TypeError(
                f"{func.__name__}() of PyTorch was given a gradscope tensor\n"
                "Call gradscope's, or hand it a tensor of PyTorch: torch.from_numpy(x.detach().numpy())."
            )
        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        modes = state.local
        modes.overrides_off += 1
        try:
            result = func(*args, **(kwargs or {}))
        finally:
            modes.overrides_off -= 1
        kind = without_bits(cls)
        if kind is Tensor or func in NOT_WRAPPED:
            return result
        return _as_subclass(result, kind, (*args, *(kwargs or {}).values()))

    def as_subclass(self, cls: type[Tensor]) -> Any:
        """Return a tensor of another class that shares memory and history with this one.

        Raises
        ------
        TypeError
            If `cls` is no subclass of Tensor.
        """
        if not (isinstance(cls, type) and issubclass(cls, Tensor)):
            raise TypeError(
                f"as_subclass(): argument 'cls' must be a subclass of Tensor, not {cls!r}\nGive the class itself."
            )
        modes = state.local
        modes.overrides_off += 1
        try:
            return _become(OPERATORS["alias"].function(self), cls)
        finally:
            modes.overrides_off -= 1

    @staticmethod
    def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False) -> Any:
        """Return a leaf of class `cls` that shares the memory of `data`."""
        return cls._sharing(data).requires_grad_(require_grad)

    @classmethod
    def _wrap(cls, array: Any, shape: tuple[int, ...] | None = None) -> Tensor:
        """Return a fresh leaf around a bare array, sharing its memory; `shape` is another tensor's, if it is known."""
        tensor = _new(cls)
        kind = array.dtype
        tensor._array = marked(array) if kind.kind == "V" else array
        tensor._dtype = kind
        tensor._shape = shared_shape(array.shape) if shape is None else shape
        tensor._edge = tensor._vc = tensor._view = tensor._meta = None
        tensor._flags = 0
        return tensor

    @classmethod
    def _sharing(cls, source: Tensor) -> Any:
        """Return a fresh leaf that shares memory and version with `source`."""
        tensor = cls._wrap(source._memory)
        tensor._vc = source._counter()
        tensor._flags = source._flags & state.INFERENCE
        return share_bits(tensor, source)

    def _around(self, memory: Any) -> Tensor:
        """Return a fresh tensor around memory that is read as this tensor's is."""
        return self._wrap(memory)

    def _write(self, values: Any) -> None:
        """Write an array (broadcast, any dtype, any device) into the elements; it is no business of versions here."""
        devices.copy_to(self._memory, values)

    def _hold(self, array: Any) -> None:
        """Be a tensor around other memory from now on."""
        self._memory = marked(array)
        self._dtype = array.dtype
        self._shape = shared_shape(array.shape)

    def _move_to(self, memory: Any) -> None:
        """Have the same elements in other memory from now on."""
        self._memory = marked(memory)
        leaf = self._accumulator()
        if leaf is not None and leaf.shape == self._shape:
            leaf.array = self._memory

    def _accumulator(self) -> AccumulateGrad | None:
        """Return the node that adds to the gradient, where it has been made."""
        meta = self._meta
        leaf: Any = own_edge(self) if meta is None or meta.accumulator is None else meta.accumulator()
        return leaf if type(leaf) is AccumulateGrad else None

    # --- memory and shape ---

    @property
    def shape(self) -> Size:
        """The shape."""
        return Size(self._shape)

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of one dimension.

        Examples
        --------
        >>> import gradscope as gs
        >>> gs.zeros(2, 3).size(), gs.zeros(2, 3).size(1)
        (gradscope.Size([2, 3]), 3)
        """
        return self.shape if dim is None else self._shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        """Return the strides in elements, or that of one dimension.

        Examples
        --------
        >>> import gradscope as gs
        >>> gs.zeros(2, 3).stride()
        (3, 1)
        """
        strides = element_strides(self._memory)
        return strides if dim is None else strides[dim]

    def storage_offset(self) -> int:
        """Return the number of elements before the first one in the storage.

        Examples
        --------
        >>> import gradscope as gs
        >>> gs.arange(5)[2:].storage_offset()
        2
        """
        return offset_of(self._memory)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._memory.ndim

    def dim(self) -> int:
        """Return the number of dimensions.

        Examples
        --------
        >>> import gradscope as gs
        >>> gs.zeros(2, 3).dim()
        2
        """
        return self._memory.ndim

    def numel(self) -> int:
        """Return the number of elements.

        Examples
        --------
        >>> import gradscope as gs
        >>> gs.zeros(2, 3).nelement()
        6
        """
        return int(self._memory.size)

    nelement = numel

    ndimension = dim

    def element_size(self) -> int:
        """Return the bytes of one element.

        Examples
        --------
        >>> import gradscope as gs
        >>> gs.zeros(2).element_size()
        4
        """
        return int(self._dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return int(self._memory.nbytes)

    itemsize = property(element_size)

    @property
    def dtype(self) -> dtypes.dtype:
        """The element type."""
        return dtypes.BY_NUMPY[self._dtype]

    @property
    def device(self) -> devices.device:
        """The device that holds the memory."""
        return devices.device_of(self._memory)

    @property
    def is_cpu(self) -> bool:
        """Whether the memory is the host's."""
        return self.device.type == "cpu"

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is on a CUDA device."""
        return self.device.type == "cuda"

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating-point one."""
        return self._dtype.kind in dtypes.FLOATING

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return self._dtype.kind == "c"

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the elements lie without gaps in row-major order, or as ``channels_last`` has them.

        Examples
        --------
        >>> import gradscope as gs
        >>> gs.zeros(2, 3).T.is_contiguous()
        False
        """
        if memory_format is None or memory_format is contiguous_format:
            return bool(self._memory.flags.c_contiguous)
        if memory_format is preserve_format:
            raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
        return self._memory.ndim == 4 and bool(self._memory.transpose((0, 2, 3, 1)).flags.c_contiguous)

    def data_ptr(self) -> int:
        """Return the address of the first element.

        Examples
        --------
        >>> import gradscope as gs
        >>> isinstance(gs.ones(2).data_ptr(), int)
        True
        """
        return devices.address(self._memory)

    def untyped_storage(self) -> Storage:
        """Return the memory behind the tensor.

        Examples
        --------
        >>> import gradscope as gs
        >>> gs.zeros(4).untyped_storage().nbytes()
        16
        """
        return Storage(self._memory)

    storage = untyped_storage

    def is_set_to(self, other: Tensor) -> bool:
        """Whether both are the same view of the same memory.

        Examples
        --------
        >>> import gradscope as gs
        >>> x = gs.zeros(2)
        >>> x.is_set_to(x.view(2))
        True
        """
        return (
            (self._conjugated, self._negated) == (other._conjugated, other._negated)
            and self.data_ptr() == other.data_ptr()
            and self.shape == other.shape
            and self.stride() == other.stride()
        )

    # --- versions ---

    def _counter(self) -> VersionCounter:
        counter = self._vc
        if counter is None:
            counter = self._vc = VersionCounter()
        return counter

    @property
    def _version(self) -> int:
        if self._flags & state.INFERENCE:
            raise RuntimeError(
                "Inference tensors do not track version counter.\nMake a clone() outside inference mode to get a "
                "tensor that does."
            )
        return 0 if self._vc is None else self._vc.version

    def _bump(self, operator: str) -> None:
        """Count one in-place write by `operator`."""
        if self._flags & state.INFERENCE:
            return
        counter = self._vc
        if counter is None:
            counter = self._vc = VersionCounter()
        counter.version += 1
        if state.special and (state.anomaly or events.wanted(events.VersionBumped)):
            self._record_write(counter, operator)

    def _record_write(self, counter: VersionCounter, operator: str) -> None:
        facts = (operator, counter.version, events.call_site_if_wanted(), self.requires_grad, state.local.grad_enabled)
        if counter.writes is None:
            counter.writes = []
        # The record kept with the counter holds no tensor, so that it keeps none alive.
        record = events.VersionBumped(None, *facts)
        if counter.writes and counter.writes[-1].repeated_by(record):
            # A loop over one line: the last of its writes stands for all.
            counter.writes.pop()
        counter.writes.append(record)
        del counter.writes[:-16]
        if events.wanted(events.VersionBumped):
            events.emit(events.VersionBumped(self, *facts))

    # --- autograd ---

    @property
    def name(self) -> str | None:
        """The name that the tensor was given, or None."""
        return None if self._meta is None else self._meta.name

    @name.setter
    def name(self, value: str | None) -> None:
        self._extras().name = value

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are computed for the tensor."""
        if self._flags & state.GRAD:
            return True
        view = self._view
        if view is None or self._flags & state.INERT:
            return False
        return self._dtype.kind in dtypes.INEXACT and view.base.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value is True and self._known_edge() is not None:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables.\n"
                "A computed tensor requires grad already; requires_grad_() says so without complaint."
            )
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Say whether gradients are computed for this leaf; return it.

        Raises
        ------
        RuntimeError
            For a non-leaf, or a dtype that has no gradients.
        """
        if not isinstance(requires_grad, bool):
            raise RuntimeError(f"requires_grad must be a bool, not {type(requires_grad).__name__}\nPass True or False.")
        if self._known_edge() is not None:
            if requires_grad:
                return self
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in "
                "a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        if requires_grad and self._dtype.kind not in dtypes.INEXACT:
            raise RuntimeError(
                f"only Tensors of floating point and complex dtype can require gradients, this one is {self.dtype}\n"
                "Convert it first, e.g. with .float()."
            )
        if requires_grad and self._flags & state.INFERENCE and not state.local.inference:
            raise RuntimeError(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.\nclone() it."
            )
        if bool(self._flags & state.GRAD) != bool(requires_grad):
            self._flags ^= state.GRAD
            if self._meta is not None:
                self._redirect_gradients(self._meta, requires_grad)
        return self

    def _redirect_gradients(self, meta: TensorMeta, wanted: bool) -> None:
        """Let the AccumulateGrad of older graphs add its gradients to this tensor, or to one that is thrown away."""
        node: Any = own_edge(self) or (meta.accumulator and meta.accumulator())
        if node is None:
            return
        node.leaf_meta = meta if wanted else TensorMeta()
        node.leaf_meta.hooks, node.leaf_meta.post_accumulate = meta.hooks, meta.post_accumulate
        meta.accumulator = weakref.ref(node)
        hold_edge(self, node if wanted and self._view is None else None)

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operator computed the tensor."""
        return not self.requires_grad or self.grad_fn is None

    @property
    def grad_fn(self) -> Node | None:
        """The node that computed the tensor, or None."""
        edge = own_edge(self) if self._view is None else current_view_edge(self, self._view)
        return None if edge is None or type(edge) is AccumulateGrad else ends_of(edge)[0]

    _grad_fn = grad_fn

    def _known_edge(self) -> Edge | None:
        """Return the edge to the node that computed the tensor as it is; a stale view's is not made anew."""
        edge = own_edge(self) if self._view is None else self._view.edge
        return None if edge is None or type(edge) is AccumulateGrad else edge

    @property
    def output_nr(self) -> int:
        """Which output of ``grad_fn`` the tensor is."""
        edge = own_edge(self) if self._view is None else current_view_edge(self, self._view)
        return 0 if edge is None else ends_of(edge)[1]

    def _extras(self) -> TensorMeta:
        meta = self._meta
        if meta is None:
            meta = self._meta = TensorMeta()
        return meta

    def _set_edge(self, edge: Edge) -> None:
        """Make `edge` the history of the tensor; retain_grad moves along."""
        retained = self._meta is not None and self._meta.retains_grad
        view = self._view
        old = own_edge(self) if view is None else view.edge
        if view is None:
            hold_edge(self, edge)
        else:
            view.edge = edge
            view.version = self._counter().version
        self._flags |= state.GRAD
        if retained:
            node, nr = (None, 0) if old is None else ends_of(old)
            if node is not None and node.extra is not None and node.extra.retain:
                node.extra.retain.pop(nr, None)
            self._retain_on(edge)

    def _make_view(self, output: Tensor, creation: str, operator: str) -> None:
        """Make `output`, whose array shares memory with this tensor's, a tracked view of the root base."""
        counter = output._vc = self._counter()
        if self._flags & state.INFERENCE:
            output._flags |= state.INFERENCE
            return
        base, parent = self, self._view
        if parent is not None:
            base = parent.base
            if parent.creation != "default" and creation == "default":
                creation = parent.creation
        if not state.local.grad_enabled and creation != "custom":
            creation = "inference" if state.local.inference else "no_grad"
        output._view = ViewInfo(base, creation, operator, counter.version)
        if parent is not None and parent.steps:
            output._view = RereadView(output._view, (*parent.steps, strided_step(output._memory, self._memory)))
        if state.special:
            output._view.site = events.call_site_if_wanted()
        if output._dtype.kind in dtypes.INEXACT:
            output._flags |= state.VIEW

    def _make_inert(self) -> None:
        """Take the history away: an inert operand was written into this tensor."""
        hold_edge(self, None)
        self._flags = self._flags & ~state.GRAD | state.INERT
        if self._view is not None:
            self._view.edge = None
            self._view.base._make_inert()

    def _mark_inference(self) -> None:
        if self._view is None:
            self._flags |= state.INFERENCE

    def _check_inplace(self, recording: bool) -> None:
        check_inplace(self, recording)

    def _rebase(self, node: Node) -> None:
        rebase(self, node)

    def _is_view(self) -> bool:
        return self._view is not None

    @property
    def _base(self) -> Tensor | None:
        return None if self._view is None else self._view.base

    def is_inference(self) -> bool:
        """Whether the tensor was made in inference mode."""
        return bool(self._flags & state.INFERENCE)

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
        **others: Any,
    ) -> None:
        """Compute the gradients of the leaves this tensor was computed from, and add them to their ``grad``.

        Parameters
        ----------
        gradient : Tensor, optional
            The gradient of this tensor, of its shape; needed unless it has one element.
        retain_graph : bool, optional
            Keep what the nodes saved, for a second backward; `create_graph` unless given.
        create_graph : bool
            Record the backward pass itself, for higher derivatives.
        inputs : Tensor, GradientEdge or sequence of them, optional
            Accumulate only into these.
        **others
            Other names of these keywords.

        Examples
        --------
        >>> import gradscope as gs
        >>> x = gs.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
        """
        if gradient is None and inputs is None and not create_graph and not self._shape and not others:
            dispatch.backward_scalar(self, retain_graph, False)
        else:
            dispatch.backward(self, gradient, retain_graph, create_graph, inputs=inputs, **others)

    def detach(self) -> Tensor:
        """Return a tensor that shares memory and version, but no history."""
        result = Tensor._wrap(self._memory)
        result._vc = self._counter()
        flags = self._flags
        result._flags = flags & (state.INERT | state.INFERENCE)
        if flags & state.MATH_BITS:
            share_bits(result, self)
        if state.special:
            dispatch.instrument(_DETACH, None, [self], [result], fresh=False)
        return result

    def detach_(self) -> Tensor:
        """Cut the tensor from its history, in place.

        Raises
        ------
        RuntimeError
            If it is a view.
        """
        if self._view is not None:
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
                "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
                "detach_() cannot be called on these gradients."
            )
        if self._meta is not None:
            self._meta.forward = None
        if self.is_leaf:
            return self.requires_grad_(False)
        hold_edge(self, None)
        self._flags &= ~state.GRAD
        self._extras().detached_at = state.next_sequence()
        return self

    @property
    def data(self) -> Tensor:
        """A tensor sharing the memory, with neither history nor version: writes through it go unseen by autograd."""
        self._tell_shared(".data")
        result = Tensor._wrap(self._memory)
        result._flags = self._flags & state.INFERENCE
        return share_bits(result, self)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if value._dtype.kind not in dtypes.INEXACT and self._flags & state.GRAD:
            raise RuntimeError(
                f"data set to a tensor that requires gradients must be floating point or complex dtype, got "
                f"{value.dtype}"
            )
        self._flags = self._flags & ~state.INFERENCE | value._flags & state.INFERENCE
        if (self._flags | value._flags) & state.MATH_BITS:
            mark(self, value._conjugated, value._negated)
        self._replace(value._memory)
        self._tell_shared(".data =")

    def _replace(self, memory: Any) -> None:
        """Be a tensor around other memory; a leaf has its AccumulateGrad no longer where that is of another kind.

        While a graph holds the node it is that of the leaf, as in PyTorch, with the shape that the leaf had then.
        """
        old, edge, leaf = self._memory, own_edge(self), self._accumulator()
        self._hold(memory)
        hold_edge(self, edge)
        if leaf is None:
            return
        if old.dtype != memory.dtype or type(old) is not type(memory):
            self._forget_leaf()
        elif old.shape == memory.shape:
            leaf.array = memory
        else:
            hold_edge(self, None)
            self._extras().accumulator = weakref.ref(leaf)

    def _forget_leaf(self) -> None:
        """Let the next graph make a new AccumulateGrad."""
        if self._meta is not None:
            self._meta.accumulator = None
        if type(own_edge(self)) is AccumulateGrad:
            hold_edge(self, None)

    def _tell_shared(self, how: str) -> None:
        """Tell listeners that the memory is handed to where writes count no version of this tensor."""
        if state.special and events.wanted(events.MemoryShared):
            events.emit(events.MemoryShared(self, how, events.call_site_if_wanted()))

    # --- new tensors like this one ---

    def new_tensor(self, data: Any, **options: Any) -> Tensor:
        """Return ``gradscope.tensor(data)`` of this tensor's dtype, on its device.

        Examples
        --------
        >>> import gradscope as gs
        >>> gs.zeros(1).new_tensor([1, 2])
        tensor([1., 2.])
        """
        return self._new("tensor", data, **options)

    def new_zeros(self, *size: Any, **options: Any) -> Tensor:
        """Return zeros of a shape, of this tensor's dtype and on its device.

        Examples
        --------
        >>> import gradscope as gs
        >>> gs.ones(1).new_zeros(2)
        tensor([0., 0.])
        """
        return self._new("zeros", *size, **options)

    def new_ones(self, *size: Any, **options: Any) -> Tensor:
        """Return ones of a shape, of this tensor's dtype and on its device.

        Examples
        --------
        >>> import gradscope as gs
        >>> gs.zeros(1).new_ones(2)
        tensor([1., 1.])
        """
        return self._new("ones", *size, **options)

    def new_empty(self, *size: Any, **options: Any) -> Tensor:
        """Return an uninitialised tensor of a shape, of this tensor's dtype and on its device.

        Examples
        --------
        >>> import gradscope as gs
        >>> gs.zeros(1).new_empty(2, 3).shape
        gradscope.Size([2, 3])
        """
        return self._new("empty", *size, **options)

    def new_empty_strided(self, size: Any, stride: Any, **options: Any) -> Tensor:
        """Return an uninitialised tensor with given strides, of this tensor's dtype and on its device.

        Examples
        --------
        >>> import gradscope as gs
        >>> gs.zeros(1).new_empty_strided((2, 3), (1, 2)).stride()
        (1, 2)
        """
        return self._new("empty_strided", size, stride, **options)

    def new_full(self, size: Any, fill_value: Any, **options: Any) -> Tensor:
        """Return a tensor filled with one number, of this tensor's dtype and on its device.

        Examples
        --------
        >>> import gradscope as gs
        >>> gs.zeros(1).new_full((2,), 7.0)
        tensor([7., 7.])
        """
        return self._new("full", size, fill_value, **options)

    def new(self, *data: Any) -> Tensor:
        """Return a tensor as the legacy constructor makes it: of sizes or data, of this tensor's dtype and device."""
        made = Tensor(*data, device=self.device)
        return made if made.dtype is self.dtype else made.to(self.dtype)

    def _new(self, function: str, *args: Any, **options: Any) -> Tensor:
        given = {name: value for name, value in options.items() if value is not None}
        check_memory(f"new_{function}", given.get("layout"), given.get("pin_memory"))
        return PUBLIC[function](*args, **{"dtype": self.dtype, "device": self.device, **given})


def shape_of(size: tuple[Any, ...], name: str = "size", given: Any = None) -> tuple[int, ...]:
    """Return the shape given as ``f(2, 3)``, ``f((2, 3))`` or ``f(size=...)``.

    Raises
    ------
    TypeError
        If a size is no integer.
    RuntimeError
        If a size is negative.
    """
    if given is not None:
        size = (given,)
    if len(size) == 1 and not is_size(size[0]):
        if not isinstance(size[0], (list, tuple)):
            raise no_size(name, size[0])
        size = tuple(size[0])
    for position, length in enumerate(size):
        if not is_size(length):
            raise no_size(name, length, position)
    shape = tuple(int(length) for length in size)
    for length in shape:
        if length < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {length}: {list(shape)}")
    return shape


def is_size(value: Any) -> bool:
    """Whether a value is the length of one dimension."""
    return isinstance(value, (int, numpy.integer, Tensor)) and not isinstance(value, bool)


def no_size(name: str, value: Any, position: int | None = None) -> TypeError:
    """Return the error for what is no size, or for an element of a size that is no length."""
    found = value.__class__.__name__
    where = f"not {found}" if position is None else f"but found element of type {found} at pos {position}"
    return TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, {where}")


def _become(tensor: Tensor, kind: type[Tensor]) -> Tensor:
    """Give a fresh tensor another class."""
    bits = (tensor._conjugated, tensor._negated)
    tensor.__class__ = kind
    mark(tensor, *bits)
    return overrides.count(tensor) if overrides.has_say(kind) else tensor


def _as_subclass(result: Any, kind: type[Tensor], given: tuple[Any, ...]) -> Any:
    """Give the tensors in the result of a call the class `kind`; what the call was given stays what it is."""
    if isinstance(result, Tensor):
        known = isinstance(result, kind) or any(result is value for value in given)
        return result if known else _become(result, kind)
    if isinstance(result, (tuple, list)):
        parts = [_as_subclass(part, kind, given) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


NOT_WRAPPED = frozenset({Tensor._base.__get__, Tensor.grad.__get__, Tensor._grad.__get__})
"""What is called for attributes that are tensors of their own: the result does not get the class of the tensor."""


class _Detach:
    """Stands for detach() in events."""

    name = "detach"
    aux = ()


_DETACH: Any = _Detach()
Tensor._memory = Tensor._array  # both are one slot
