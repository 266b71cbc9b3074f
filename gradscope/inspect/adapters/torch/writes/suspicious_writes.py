"""What may have spoilt a gradient in silence, seen without listening to operators: no mode is on.

The functions are patched by which memory is handed out, and by which code of the program is given tensors that others
read too; when a backward begins, what its nodes have saved is held against the former. A suspicion is no finding:
whoever hears of one runs the program again, and watches.

While an optimizer steps nothing is compared: what it has asked for by ``.data`` counts as written, as it nearly always
is, and graphs that were made before the step and run after it are rare.

Nothing is suspected of hooks on nodes themselves, and of what another thread has saved, whose sequence numbers are of a
count of its own.
"""

from __future__ import annotations

import functools
import threading
import weakref
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any

import numpy
import torch
from torch.autograd import Function
from torch.autograd.function import BackwardCFunction
from torch.nn.modules import Module, batchnorm
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.hooks import BackwardHook

from ...context_attributes import context_tensors
from ..engine_wrapper import ENGINE, HOLDERS, blindness, is_compiling
from ..forward_pass import CONVERSIONS, lies_in, replace
from ..numpy_conversion import bits_of, storage_of
from ..observed_backward import edge_of, reached
from ..operator_calls import grad_fn_of, tensors_in
from ..saved_tensors import held_of, written_by_itself
from ..transforms.torch_compile import leave_uncompiled
from .unversioned_writes import HandedMemory

__all__ = ["suspect_writes"]

_TENSOR = torch.Tensor
_DATA = torch.Tensor.data
_KEPT = "gradscope.inspect.suspected_on_ctx"
_traced = torch.compiler.is_dynamo_compiling

_Given = list[tuple[torch.Tensor, int]]


def suspect_writes(tell: Callable[[], None]) -> Callable[[], None]:
    """Call a function whenever something happens by which a gradient may be wrong without an error.

    Returns
    -------
    callable
        Ends it.

    Examples
    --------
    >>> seen = []
    >>> end = suspect_writes(lambda: seen.append("a suspicion"))
    >>> w = torch.ones(2, requires_grad=True)
    >>> loss = (w * w).sum()
    >>> _ = w.data.zero_()
    >>> loss.backward()
    >>> end()
    >>> seen
    ['a suspicion']
    """
    watch = _SuspicionWatch(tell)
    undo = [*watch.see_memory(), *watch.see_steps(), *watch.see_calls(), *watch.see_backwards()]

    def end() -> None:
        while undo:
            undo.pop()()

    return end


class _OfThread(threading.local):
    """What a thread is doing.

    Attributes
    ----------
    step : list or None
        While an optimizer steps: what was handed out by ``.data``, the key of its storage and a reference to the alias.
    """

    def __init__(self) -> None:
        self.step: list[tuple[int, weakref.ref[torch.Tensor]]] | None = None


class _SuspicionWatch:
    """What the patched functions do."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._handed = HandedMemory()
        self._thread = _OfThread()

    # --- memory that is handed out ---

    def see_memory(self) -> list[Callable[[], None]]:
        """Patch what hands out memory; return what undoes it."""
        handed = self._hand_out_alias

        def get_data(self: torch.Tensor) -> torch.Tensor:
            alias: torch.Tensor = _DATA.__get__(self)
            handed(self, alias)
            return alias

        data = property(get_data, self._set_data(), doc=_DATA.__doc__)
        return [
            replace(_TENSOR, "data", _DATA, data),
            replace(_TENSOR, "numpy", _TENSOR.numpy, self._handing(_TENSOR.numpy, known=True)),
            replace(_TENSOR, "__dlpack__", _TENSOR.__dlpack__, self._handing(_TENSOR.__dlpack__, known=False)),
            replace(_TENSOR, "__setitem__", _TENSOR.__setitem__, self._assigning(_TENSOR.__setitem__)),
            *(replace(torch, name, getattr(torch, name), self._converting(name)) for name in CONVERSIONS),
        ]

    def _set_data(self) -> Callable[[torch.Tensor, torch.Tensor], None]:
        replaced = self._replaced

        def set_data(self: torch.Tensor, other: torch.Tensor) -> None:
            _DATA.__set__(self, other)
            replaced(self)

        return set_data

    def _handing(self, original: Callable[..., Any], *, known: bool) -> Callable[..., Any]:
        """Return a method that hands out memory, in what it returns, if that is known to keep it, or in something."""
        handed = self._hand_out

        @functools.wraps(original)
        def hand_out(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            handed(self, result if known else None)
            return result

        return hand_out

    def _assigning(self, original: Callable[..., Any]) -> Callable[..., Any]:
        tell = self._tell

        @functools.wraps(original)
        def assign(self: torch.Tensor, index: Any, value: Any) -> None:
            original(self, index, value)
            if not _unseen() and type(self) is _TENSOR and self.layout is torch.strided and 0 in self.stride():
                tell()

        return assign

    def _converting(self, name: str) -> Callable[..., Any]:
        original = getattr(torch, name)

        @functools.wraps(original)
        def convert(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not _traced() and type(result) is _TENSOR and lies_in(result, name, args):
                self._hand_out(result, _owner_of(args[0]) if args else None)
            return result

        return convert

    def _hand_out(self, tensor: torch.Tensor, holder: Any) -> None:
        if _unseen():
            return
        with torch._C.DisableTorchFunction():
            self._handed.hand_out(tensor, holder)

    def _hand_out_alias(self, tensor: torch.Tensor, alias: torch.Tensor) -> None:
        if _unseen():
            return
        step = self._thread.step
        with torch._C.DisableTorchFunction():
            if step is None:
                self._handed.hand_out(tensor, alias)
                return
            key = _storage_of(tensor)
            if key is not None:
                step.append((key, weakref.ref(alias)))

    def _replaced(self, tensor: torch.Tensor) -> None:
        if _unseen() or tensor.layout is not torch.strided:
            return
        with torch._C.DisableTorchFunction():
            self._handed.replaced(tensor)

    # --- the step of an optimizer ---

    def see_steps(self) -> list[Callable[[], None]]:
        """Hear of the steps of optimizers; return what ends it."""
        before = register_optimizer_step_pre_hook(self._step_entered)
        after = register_optimizer_step_post_hook(self._step_left)
        return [before.remove, after.remove]

    def _step_entered(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        closure = args[1] if len(args) > 1 else kwargs.get("closure")  # args begins with the optimizer
        if closure is None and not _unseen() and self._thread.step is None:
            self._thread.step = []

    def _step_left(self, *_: Any) -> None:
        """Take what the step has asked for as written, and look after the aliases that it keeps."""
        if _unseen() or self._thread.step is None:
            return
        step, self._thread.step = self._thread.step, None
        with torch._C.DisableTorchFunction():
            for key, reference in step:
                alias = reference()
                if alias is not None:
                    self._handed.hand_out(alias, alias)
                self._handed.written(key)

    # --- the backward ---

    def see_backwards(self) -> list[Callable[[], None]]:
        """Patch what calls the engine; return what undoes it."""
        original = getattr(HOLDERS[0], ENGINE)

        def engine_run_backward(outputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            self._step_left()  # a step that has raised did not say so
            if self._handed and not is_compiling() and not blindness():
                self._look_at_graph(outputs)
            return original(outputs, *args, **kwargs)

        leave_uncompiled(engine_run_backward, calls=False)
        return [replace(holder, ENGINE, getattr(holder, ENGINE), engine_run_backward) for holder in HOLDERS]

    def _look_at_graph(self, outputs: Sequence[Any]) -> None:
        roots = [edge[0] for edge in map(edge_of, outputs) if edge is not None]
        saved: list[tuple[int, int, torch.Tensor]] = []
        with torch._C.DisableTorchFunction():
            nodes = reached(roots)
            numbers = [node._sequence_nr() for node in nodes]
            if not self._handed.concerns(min(numbers, default=0)):
                return
            for node, number in zip(nodes, numbers, strict=True):
                unread = written_by_itself(node)
                for name, tensor in held_of(node):
                    key = None if name in unread else _storage_of(tensor)
                    if key is not None:
                        saved.append((key, number, tensor))
            if self._handed.changed_since(saved):
                self._tell()

    # --- code that is given tensors ---

    def see_calls(self) -> list[Callable[[], None]]:
        """Patch what gives tensors to the program's code; return what undoes it."""
        backward, call = BackwardCFunction.apply, Module._call_impl
        return [
            replace(Module, "_call_impl", call, self._calling(call)),
            replace(Function, "apply", vars(Function)["apply"], classmethod(self._applying(vars(Function)["apply"]))),
            replace(BackwardCFunction, "apply", backward, self._running(backward)),
            replace(_TENSOR, "register_hook", _TENSOR.register_hook, self._registering(_TENSOR.register_hook)),
            replace(BackwardHook, "__init__", BackwardHook.__init__, self._hooking(BackwardHook.__init__)),
        ]

    def _calling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method that calls a module: global hooks, even such as do nothing, take twice its time."""
        recording = torch.is_grad_enabled

        def _call_impl(module: Any, *args: Any, **kwargs: Any) -> Any:
            if not recording() or _unseen():
                return original(module, *args, **kwargs)
            if not module.training and isinstance(module, batchnorm._BatchNorm):
                # What batch_norm is about to save it writes, counting no version, when it runs in training.
                for statistics in (module.running_mean, module.running_var):
                    if statistics is not None:
                        self._hand_out(statistics, statistics)
            given = _given(args)
            if not given:
                return original(module, *args, **kwargs)
            output = None
            try:
                output = original(module, *args, **kwargs)
                return output
            finally:
                written = _written(given)
                if written:
                    returned = {_storage_of(tensor) for tensor in tensors_in(output)}
                    if any(_storage_of(tensor) not in returned for tensor in written):
                        self._tell()

        leave_uncompiled(_call_impl, calls=False)
        return _call_impl

    def _applying(self, original: Any) -> Callable[..., Any]:
        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            run = original.__get__(None, cls)
            if _unseen() or torch._C._are_functorch_transforms_active():
                return run(*args, **kwargs)
            given = _given(args)
            result = run(*args, **kwargs)
            outputs = (result,) if type(result) is _TENSOR else tuple(tensors_in(result))
            nodes = [node for node in map(grad_fn_of, outputs) if getattr(node, "_forward_cls", None) is cls]
            if any(grad_fn_of(tensor) not in nodes for tensor in _written(given)):  # it was not given to mark_dirty()
                self._tell()
            for node in nodes[:1]:
                kept = _kept_on(node, (*args, *outputs))
                if kept:
                    node.metadata[_KEPT] = dict(kept)
            return result

        return apply

    def _running(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method that runs a custom backward."""

        def apply(node: Any, *grads: Any) -> Any:
            before = node.metadata.get(_KEPT)
            if before and any(before.get(name, now) != now for name, now in _checksums(_kept_as(node, before))):
                self._tell()
            given = _versions(grads)
            try:
                return original(node, *grads)
            finally:
                if _written(given):
                    self._tell()

        return apply

    def _registering(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def register_hook(tensor: torch.Tensor, hook: Any) -> Any:
            return original(tensor, hook if _unseen() or not callable(hook) else self._checked(hook))

        return register_hook

    def _hooking(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def init(hook: Any, owner: Any, user_hooks: Any, user_pre_hooks: Any) -> None:
            original(hook, owner, *(list(map(self._checked, hooks)) for hooks in (user_hooks, user_pre_hooks)))

        return init

    def _checked(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        """Return a hook that is suspected where it writes what it is given."""

        def run(*args: Any) -> Any:
            given = _versions(tensors_in(args))
            try:
                return hook(*args)
            finally:
                if _written(given):
                    self._tell()

        return functools.update_wrapper(run, hook, functools.WRAPPER_ASSIGNMENTS, ())


def _unseen() -> bool:
    """Whether what happens now is only read, in order to be compiled or traced: nothing may stand between."""
    return _traced() or torch._C._is_tracing()


def _given(values: Iterable[Any]) -> _Given:
    """Return the results among what is given to code of the program, with their versions."""
    return [
        (value, value._version)
        for value in values
        if type(value) is _TENSOR and value.requires_grad and grad_fn_of(value) is not None
    ]


def _versions(values: Iterable[Any]) -> _Given:
    return [(value, value._version) for value in values if type(value) is _TENSOR and not value.is_inference()]


def _written(given: _Given) -> list[torch.Tensor]:
    return [tensor for tensor, version in given if tensor._version != version]


def _storage_of(tensor: torch.Tensor) -> int | None:
    storage = storage_of(tensor)
    return None if storage is None else storage._cdata


def _owner_of(value: Any) -> Any:
    """Return the array that owns the memory of an array; None for what is no array."""
    owner = value if isinstance(value, numpy.ndarray) else None
    while owner is not None and isinstance(owner.base, numpy.ndarray):
        owner = owner.base
    return owner


def _kept_on(node: Any, values: Iterable[Any]) -> list[tuple[str, int]]:
    """Return the inputs and outputs that are kept on ``ctx``, with their checksums."""
    kept = list(context_tensors(vars(node), _is_tensor))
    if not kept:
        return []
    memories = {_storage_of(value) for value in values if isinstance(value, _TENSOR)}
    return _checksums((name, tensor) for name, tensor in kept if _storage_of(tensor) in memories)


def _kept_as(node: Any, names: Container[str]) -> Iterator[tuple[str, torch.Tensor]]:
    return (one for one in context_tensors(vars(node), _is_tensor) if one[0] in names)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _TENSOR)


def _checksums(tensors: Iterable[tuple[str, torch.Tensor]]) -> list[tuple[str, int]]:
    with torch._C.DisableTorchFunction():
        bits = [(name, bits_of(tensor)) for name, tensor in tensors]
        return [(name, zlib.crc32(there)) for name, there in bits if there is not None]
