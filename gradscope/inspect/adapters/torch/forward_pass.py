"""The forward pass of PyTorch: which nodes each call makes, on which line, inside which module.

A function mode sees every call of PyTorch's Python interface. A node belongs to the call during which it was made,
which its sequence number tells: the counter is read before and after, and what has been made between is found from the
result along ``next_functions``. Where the counter stands still, nothing was recorded and nothing is asked.

Modes belong to a thread: the one that starts to observe enters it, threads that the program starts enter it for their
lifetime, any other for as long as a module runs on it. Where nothing can be recorded (a module under no_grad, the step
of an optimizer) the mode is left, unless somebody wants to hear of the operators there: it would cost time, and keep
PyTorch from its fused inference paths.

Writes are heard by a dispatch mode, which costs several times as much at each operator, those of the engine too. So it
is in place only where a call may write that the function mode has seen, and where the function mode is left; what the
engine adds to the gradients of leaves is told by the backward itself.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy
import torch
from torch.autograd import Function
from torch.nn.modules import module
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.overrides import TorchFunctionMode

from ....runtime.call_sites import CallSite, user_site
from ..guarded_observer import adapter_failed
from ..native_adapter import location_of
from ..protocol import Observer, hears, hears_operator
from .graph_freeing import cut_rows
from .node_hooks import note_hooks
from .numpy_conversion import storage_of
from .operator_calls import TorchOperatorCall, grad_fn_of, made_by, operator_told, tensors_in
from .saved_tensors import late_hooks
from .saved_tensors_unpacked import note_thread
from .transforms.functorch import is_wrapped
from .transforms.jit_tracing import TRACED, around_tracing
from .transforms.torch_compile import blindness_of, leave_uncompiled
from .warning_lines import relocate_warnings
from .writes.inplace_writes import PURE, SHARING, TorchShare, TorchWrite, WriteMode, called, given_to_write, may_write
from .writes.refused_writes import explain_refusal

__all__ = [
    "CONVERSIONS",
    "HEARD",
    "SITE",
    "ForwardTap",
    "WantedEvents",
    "forward_tap",
    "lies_in",
    "replace",
]

SITE = "gradscope.inspect.site"

HEARD = "gradscope.inspect.heard"
"""In the metadata of a node with a :data:`SITE`: to unpack what it has saved may run code of the program's."""

CONVERSIONS = ("from_numpy", "frombuffer", "as_tensor", "asarray")
"""The functions that make a tensor of somebody else's memory."""

_TENSOR = torch.Tensor
_PARAMETER = torch.nn.Parameter
_sequence_nr = torch._C._autograd._get_sequence_nr
# Its argument asks for those too that tracing leaves out.
_hooks_in_force = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", bool)
_SET_ITEM = torch.Tensor.__setitem__
# What asks a tensor for a fact, or hands its gradient on: it makes no node and writes no number.
_QUERIES = frozenset(
    [torch.Tensor.grad.__set__]
    + [
        getattr(torch.Tensor, name).__get__
        for name in (
            "_version", "device", "dtype", "grad", "grad_fn", "is_cpu", "is_cuda", "is_leaf", "layout", "ndim",
            "requires_grad", "retains_grad", "shape",
        )
    ]
    + [
        getattr(torch.Tensor, name)
        for name in ("dim", "element_size", "is_contiguous", "is_inference", "numel", "size", "stride")
    ]
)  # fmt: skip
_traced = torch.compiler.is_dynamo_compiling
_is_tracing = torch._C._is_tracing


class CallMode(TorchFunctionMode):
    """The function mode: hands what a call has recorded to the tap."""

    def __init__(self, tap: ForwardTap) -> None:
        super().__init__()
        self._tap = tap

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Carry out the call, and see what it made."""
        if _traced():  # torch.compile inlines this method, and can make nothing of what follows
            return func(*args, **(kwargs or {}))
        if func in _QUERIES:
            return func(*args, **kwargs) if kwargs else func(*args)
        tap, writing, pure = self._tap, None, func in PURE
        try:
            if kwargs or not pure:
                writing = _WritingCall(tap, func, args, kwargs)
        except Exception as error:
            tap.failed(error)
        before = _sequence_nr()
        try:
            result = func(*args, **kwargs) if kwargs else func(*args)
        except RuntimeError as error:
            tap.refused(error, args, kwargs)
            raise
        finally:
            if writing is not None and writing.listening:
                tap.leave_writes()
        try:
            if writing is not None:
                writing.tell_own()
            numbers = range(before, _sequence_nr())
            if numbers and tap.nodes:
                tap.note(numbers, result, args, pure)
            if writing is not None and tap.writes:
                writing.tell_shared()
            if tap.operators:
                tap.ran(func, args, kwargs, result, numbers)
        except Exception as error:
            tap.failed(error)
        return result


class _WritingCall:
    """A call that may write, or hand out memory; most only compute, and need none of this.

    Attributes
    ----------
    listening : bool
        Whether the mode for writes has been put in place for it.
    """

    __slots__ = ("_args", "_counted", "_first", "_func", "_kwargs", "_tap", "_version", "listening")

    def __init__(self, tap: ForwardTap, func: Any, args: Any, kwargs: Any) -> None:
        self._tap, self._func, self._args, self._kwargs = tap, func, args, kwargs
        first: Any = None
        if tap.own_writes:  # torch.nn.init gives what it writes by name
            first = args[0] if args else kwargs and kwargs.get("tensor")
        self._first = first
        self._counted = type(first) in _COUNTED and not first.is_inference()
        self._version = first._version if self._counted else 0
        self.listening = may_write(func, args, kwargs) and bool(tap.writes) and tap.enter_writes()

    def tell_own(self) -> None:
        """Tell of what it has written that was given to it, without the mode for writes."""
        func, kwargs, first = self._func, self._kwargs, self._first
        if self._counted and first._version != self._version:
            self._tap.wrote(called(func), (first,))
        elif type(first) in _LISTS or (kwargs and "out" in kwargs and self._tap.own_writes):
            self._tap.wrote(called(func), given_to_write(func, self._args, kwargs))

    def tell_shared(self) -> None:
        """Tell of memory that it has handed out, and of an item that it has assigned to."""
        func, args = self._func, self._args
        if func in SHARING:
            self._tap.shared(args[0], SHARING[func])
        elif func is _SET_ITEM:
            self._tap.assigned(*args[:2])


class WantedEvents(NamedTuple):
    """The events of the forward pass that an observer wants; see ``Adapter.observe``."""

    forward: bool
    operators: bool
    writes: bool
    own_writes: bool


class _MuteDepth(threading.local):
    """The number of open blocks in which observers are told nothing of this thread."""

    depth = 0


class _ThreadState(threading.local):
    """What a tap has done on this thread.

    Attributes
    ----------
    generation, depth : int
        Which observation it was entered for, and how often.
    seen, writes : bool
        Whether the mode for calls has been entered, and whether that for writes is in place.
    stepping : bool
        Whether a step of an optimizer has left the former.
    above : int
        How many modes of the program stood above it when it was left: they are theirs to leave, the topmost first.
    entered : list of (int, bool)
        The modules that run, by identity, each with whether that mode was in place before.
    """

    generation = depth = above = 0
    seen = writes = stepping = False

    def __init__(self) -> None:
        self.entered: list[tuple[int, bool]] = []


class ForwardTap:
    """All that is put into PyTorch for the forward pass; there is one, and it is in place while somebody observes.

    Attributes
    ----------
    modules, nodes, operators, writes, own_writes : tuple of Observer
        Who wants to hear of each.
    """

    def __init__(self) -> None:
        self.modules: tuple[Observer, ...] = ()
        self.nodes: tuple[Observer, ...] = ()
        self.operators: tuple[Observer, ...] = ()
        self.writes: tuple[Observer, ...] = ()
        self.own_writes: tuple[Observer, ...] = ()
        self.muted = _MuteDepth()
        self._mode = CallMode(self)
        self._write_mode = WriteMode(self.written, self.failed)
        self._lock = threading.RLock()
        self._local = _ThreadState()
        # Whether somebody hears of more than modules: only then do calls go through the mode.
        self._hears_calls = False
        self._recorded: tuple[Callable[[Sequence[Any]], None], ...] = ()
        self._tellers: dict[str, tuple[Callable[[Any], None], ...]] = {}
        self._users = 0
        self._generation = 0
        self._undo: list[Callable[[], None]] = []
        self._leave_conversions: Callable[[], None] = _nothing

    # --- who listens ---

    def add(self, observer: Observer, wanted: WantedEvents) -> None:
        """Tell `observer`, and put the tap in place on this thread and those it starts."""
        with self._lock:
            if wanted.forward:
                self.modules = (*self.modules, observer)
            if wanted.forward and observer.places_of_nodes:
                self.nodes = (*self.nodes, observer)
            if wanted.operators:
                self.operators = (*self.operators, observer)
            if wanted.writes:
                self.writes = (*self.writes, observer)
            if wanted.own_writes:
                self.own_writes = (*self.own_writes, observer)
            self._observers_changed()
            self._users += 1
            if self._users == 1:
                self._generation += 1
                self._install()
        self.enter_thread()

    def remove(self, observer: Observer) -> None:
        """Tell `observer` no more."""
        with self._lock:
            for name in ("modules", "nodes", "operators", "writes", "own_writes"):
                setattr(self, name, tuple(o for o in getattr(self, name) if o is not observer))
            self._observers_changed()
        self.leave_thread()
        with self._lock:
            self._users -= 1
            if not self._users:
                while self._undo:
                    self._undo.pop()()

    def failed(self, error: Exception) -> None:
        """Hand an error of its own to all who listen."""
        adapter_failed((*self.modules, *self.nodes, *self.operators, *self.writes, *self.own_writes), error)

    def _observers_changed(self) -> None:
        self._hears_calls = self._is_heard_of_calls()
        # Of a doctor's forty observers few hear of each node and operator.
        hearing = [o for o in self.nodes if hears(o, "operator_recorded") or hears(o, "operators_recorded")]
        self._recorded = tuple([observer.operators_recorded for observer in hearing])
        self._tellers = {}
        heard = any(hears(observer, "write_started") for observer in self.writes)
        self._write_mode.announce = self.write_started if heard else None

    def _install(self) -> None:
        self._undo += [
            _patch_modules(self),
            _patch_function(self),
            _patch_zero_grad(self),
            _patch_scripts(self),
            functools.partial(self.see_conversions, False),
            _patch_threads(self),
            around_tracing(functools.partial(_TracingPause, self)),
            note_hooks(),
            late_hooks.note(),
        ]
        self.see_conversions(True)
        step = register_optimizer_step_pre_hook(self._step_entered)
        stepped = register_optimizer_step_post_hook(self._stepped)
        self._undo += [step.remove, stepped.remove]
        self._undo.append(relocate_warnings(_MODE_CODES, rf"{re.escape(__package__)}\.\w+"))

    def see_conversions(self, on: bool) -> None:
        """See tensors made of somebody else's memory, or stand in nobody's way there."""
        self._leave_conversions()
        self._leave_conversions = _patch_conversions(self) if on else _nothing

    # --- threads ---

    def _is_heard_of_calls(self) -> bool:
        return bool(self.nodes or self.operators or self.writes or self.own_writes)

    @property
    def active(self) -> bool:
        """Whether this thread is seen."""
        return _on_stack(self._mode)

    def enter_thread(self) -> None:
        """See what this thread does."""
        if self._local.generation != self._generation:
            # The observation was closed meanwhile on another thread, which could not take the mode off this one's
            # stack.
            self._local.generation, self._local.depth, self._local.seen = self._generation, 0, False
            _take_off_stack(self._mode)
        self._local.depth += 1
        if self._hears_calls and not self._local.seen:
            self._local.seen = True
            self._mode.__enter__()

    def leave_thread(self) -> None:
        """See it no more, once this has been said as often as :meth:`enter_thread`."""
        depth = self._local.depth = max(0, self._local.depth - 1)
        if not depth:
            if self.active:
                _take_off_stack(self._mode)
            elif self._local.seen:
                _take_off_when_back(self._mode)
            self._local.seen = False
        if not (depth and self.writes):
            self.leave_writes()

    def enter_writes(self) -> bool:
        """Hear of writes on this thread; return whether they were not heard of before."""
        local = self._local
        if local.writes:
            return False
        local.writes = True
        self._write_mode.__enter__()
        return True

    def leave_writes(self) -> bool:
        """Hear of them no more; return whether they were heard of."""
        heard = self._local.writes
        if heard:
            self._local.writes = False
            self._write_mode.take_off()
        return heard

    def enter_engine(self) -> Callable[[], None]:
        """See what Python code does inside a backward, where the call of backward() has hidden the mode.

        Return what undoes that.
        """
        self._step_left()
        if not self._hears_calls or self.active:
            return _nothing
        heard = self.leave_writes()
        self._mode.__enter__()
        return functools.partial(self._leave_engine, heard)

    def _leave_engine(self, heard: bool) -> None:
        _take_off_stack(self._mode)
        if heard:
            self.enter_writes()

    # --- optimizers ---

    def _step_entered(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        try:
            if _traced():  # torch.compile inlines this method too
                return
            closure = args[1] if len(args) > 1 else kwargs.get("closure")  # args begins with the optimizer
            if closure is None and self.active and not self._is_heard(optimizer):
                self._local.stepping = True
                self.switch(False)
        except Exception as error:
            self.failed(error)

    def _is_heard(self, optimizer: Any) -> bool:
        """Whether somebody wants to hear of the operators in a step of an optimizer."""
        if optimizer.defaults.get("differentiable"):  # that is recorded
            return True
        if not self.operators or any(observer.operators_of_steps for observer in self.operators):
            return bool(self.operators)
        hooked = optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks
        return bool(hooked) or not type(optimizer).step.__module__.startswith("torch.optim.")

    def _step_left(self, *_: Any) -> None:
        # This is called again by whatever runs after a step that raised.
        if self._local.stepping:
            self._local.stepping = False
            self.switch(True)

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        try:
            if _traced():
                return
            if self.own_writes:  # the mode, if it is on again, is asked of each parameter that is looked at
                with torch._C.DisableTorchFunction():
                    parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
                self.wrote(f"{type(optimizer).__name__}.step", parameters)
            self._step_left()
        except Exception as error:
            self.failed(error)

    # --- modules ---

    def module_entered(self, module: Any) -> None:
        """Tell of a module that is about to run."""
        try:
            if self._local.stepping:
                self._step_left()
            active = _on_stack(self._mode)
            if self._hears_calls or active:
                self._note_entered(module, active)
            with torch._C.DisableTorchFunction():
                for observer in self.modules:
                    observer.module_entered(module)
        except Exception as error:
            self.failed(error)

    def _note_entered(self, module: Any, active: bool) -> None:
        """Put the mode in place while a module runs, if what it calls is to be heard of."""
        wanted = self._hears_calls and (
            torch.is_grad_enabled() or any(observer.operators_unrecorded for observer in self.operators)
        )
        self._local.entered.append((id(module), active))
        if wanted != active:
            self.switch(wanted)

    def module_left(self, module: Any, args: Any, output: Any) -> None:
        """Tell of a module that has run; of one that has raised, without an output."""
        try:
            entered, identity = self._local.entered, id(module)
            if entered and (entered[-1][0] == identity or identity in map(itemgetter(0), entered)):
                self._note_left(identity, entered)
            with torch._C.DisableTorchFunction():
                for observer in self.modules:
                    observer.module_left(module)
                    observer.module_returned(module, args, output)
        except Exception as error:
            self.failed(error)

    def _note_left(self, module: int, entered: list[tuple[int, bool]]) -> None:
        """Undo what was done when a module was entered, and those inside that were left by an exception."""
        while entered:
            identity, active = entered.pop()
            if active != _on_stack(self._mode):
                self.switch(active)
            if identity == module:
                break

    def switch(self, on: bool) -> None:
        """Enter or leave the mode on this thread; without it no call tells that it may write."""
        if on:
            self.leave_writes()
            _put_on_stack(self._mode, self._local.above)
        else:
            self._local.above = _take_off_stack(self._mode)
            if self.writes:
                self.enter_writes()

    # --- calls ---

    def note(self, numbers: range, result: Any, args: Any, pure: bool = False) -> None:
        """Note on the nodes that a call has made, by their numbers, where the program stands, and tell of them.

        Parameters
        ----------
        pure : bool
            Whether the call is one of :data:`PURE`, which enter no saved-tensor hooks.
        """
        if self.muted.depth:
            return
        site = user_site(3)
        nodes = _made_alone(numbers, result, site) or _made(numbers, result, args, site)[::-1]
        if not pure or type(result) is not _TENSOR or _hooks_in_force(True) is not None:
            for node in nodes:
                node.metadata[HEARD] = True
        cut_rows(nodes)
        note_thread(nodes)
        for tell in self._recorded:
            tell(nodes)

    def ran(self, func: Any, args: Any, kwargs: Any, result: Any, numbers: range) -> None:
        """Tell of an operator that has run, recorded or not."""
        if self.muted.depth:
            return
        name = operator_told(func)
        outputs = made_by(name, args, result) if name else ()
        told = self._told_of(name) if outputs else ()
        if told:
            call = TorchOperatorCall(name, args, kwargs, outputs, numbers, user_site(3))
            for ran in told:
                ran(call)

    def _told_of(self, name: str) -> tuple[Callable[[Any], None], ...]:
        """Return what tells observers of an operator."""
        found = self._tellers.get(name)
        if found is None:
            hearing = (observer for observer in self.operators if hears_operator(observer, name))
            found = self._tellers[name] = tuple([observer.operator_ran for observer in hearing])
        return found

    def write_started(self, tensor: torch.Tensor) -> None:
        """Tell of a tensor that is about to be written."""
        try:
            if self.muted.depth:
                return
            for observer in self.writes:
                observer.write_started(tensor)
        except Exception as error:
            self.failed(error)

    def written(self, write: Any) -> None:
        """Tell of a tensor that has been written."""
        try:
            if self.muted.depth:
                return
            write.site = user_site(2)
            for observer in self.writes:
                observer.tensor_written(write)
        except Exception as error:
            self.failed(error)

    def accumulates(self, leaf: torch.Tensor, site: CallSite) -> None:
        """Tell that a backward is about to add to the gradient that a leaf has, which the engine does in place."""
        try:
            if self.muted.depth:
                return
            with torch._C.DisableTorchFunction():
                grad = leaf.grad
                if grad is None or grad.layout is not torch.strided or grad.is_inference():
                    return
                write = TorchWrite(grad, "add_", grad._version + 1, False, site)
            self.write_started(grad)
            for observer in self.writes:
                observer.tensor_written(write)
        except Exception as error:
            self.failed(error)

    def wrote(self, operator: str, tensors: Iterable[torch.Tensor]) -> None:
        """Tell of the tensors that a call of the program has written."""
        if self.muted.depth:
            return
        site, grad_enabled = user_site(3), torch.is_grad_enabled()
        with torch._C.DisableTorchFunction():
            writes = [
                TorchWrite(tensor, operator, tensor._version, grad_enabled, site)
                for tensor in tensors
                if not tensor.is_inference()
            ]
        if writes:
            for observer in self.own_writes:
                observer.tensors_written(writes)

    def shared(self, tensor: torch.Tensor, how: str) -> None:
        """Tell of memory that can now be written without a version being counted."""
        if self.muted.depth:
            return
        storage = storage_of(tensor)
        if storage is None:
            return
        share = TorchShare(tensor, storage, how, user_site(3))
        for observer in self.writes:
            observer.memory_shared(share)

    def assigned(self, tensor: torch.Tensor, index: Any) -> None:
        """Tell of an item that has been assigned to, where several elements lie at one address."""
        if self.muted.depth or tensor.layout is not torch.strided or is_wrapped(tensor):
            return
        with torch._C.DisableTorchFunction():
            overlaps = any(size > 1 and not stride for size, stride in zip(tensor.shape, tensor.stride()))
        if overlaps:
            location = location_of(user_site(3))
            for observer in self.writes:
                observer.item_assigned(tensor, index, location)

    def applied(self, function: Any, args: tuple[Any, ...]) -> None:
        """Tell of a custom Function that is about to run forward."""
        if not self.active or self.muted.depth:
            return
        if function.__name__ == "CompiledFunction":
            self.blind(blindness_of(function))
        with torch._C.DisableTorchFunction():
            for observer in self.nodes:
                observer.function_applied(function, args)

    def blind(self, reason: str) -> None:
        """Tell of a call that cannot be observed."""
        try:
            for observer in self.nodes:
                observer.blind_call(reason)
        except Exception as error:
            self.failed(error)

    def refused(self, error: RuntimeError, args: Any, kwargs: Any) -> None:
        """Tell of a write that PyTorch refuses, if that is what a call has raised."""
        try:
            if not self.writes or hasattr(error, "reason"):
                return
            if self.muted.depth:
                return
            tensors = list(tensors_in((args, kwargs or {})))
            if explain_refusal(error, tensors, lambda node: node.metadata.get(SITE)):
                for observer in self.writes:
                    observer.write_refused(error)
        except Exception as error:
            self.failed(error)


leave_uncompiled(CallMode.__torch_function__, calls=False)
leave_uncompiled(
    _WritingCall.__init__,
    _WritingCall.tell_own,
    _WritingCall.tell_shared,
    may_write,
    called,
    given_to_write,
    WriteMode.__torch_dispatch__,
    ForwardTap.note,
    ForwardTap.wrote,
    ForwardTap.assigned,
    ForwardTap.applied,
    ForwardTap.ran,
    ForwardTap.shared,
    ForwardTap.refused,
    ForwardTap.enter_engine,
    ForwardTap._leave_engine,
    ForwardTap.enter_writes,
    ForwardTap.leave_writes,
    ForwardTap._step_entered,
    ForwardTap._stepped,
    ForwardTap.module_entered,
    ForwardTap.module_left,
)

_COUNTED = {_TENSOR, _PARAMETER}
_LISTS = {list, tuple}
_MODE_CODES = {
    inspect.unwrap(method).__code__ for method in (CallMode.__torch_function__, WriteMode.__torch_dispatch__)
}


def _nodes_of(value: Any) -> list[Any]:
    return [node for node in map(grad_fn_of, tensors_in(value)) if node is not None]


def _made_alone(numbers: range, result: Any, site: CallSite) -> tuple[Any, ...] | None:
    """Return the one node that a call has made, as most have; None where that is to be found out by :func:`_made`."""
    if len(numbers) != 1 or type(result) is not _TENSOR:
        return None
    node = grad_fn_of(result)
    if node is None or node._sequence_nr() != numbers.start:
        return None
    notes = node.metadata
    if SITE in notes:
        return None
    notes[SITE] = site
    return (node,)


def _made(numbers: range, result: Any, args: Any, site: CallSite) -> list[Any]:
    """Return the nodes that a call has made and no call has been told of, outermost first; note `site` on each.

    Their sequence numbers are those by which the counter of this thread went on; a graph that was made on another
    thread may bear any.
    """
    if type(result) is _TENSOR:
        node = grad_fn_of(result)
        found = _nodes_of(args) if node is None else [node]
    else:
        found = _nodes_of(result) or _nodes_of(args)
    count = len(numbers)
    made: list[Any] = []
    while found:
        node = found.pop()
        if node._sequence_nr() not in numbers:
            continue
        notes = node.metadata
        if SITE in notes:
            continue
        notes[SITE] = site
        made.append(node)
        if len(made) == count:  # it has made as many as it has counted, at most
            break
        found += [child for child, _ in node.next_functions if child is not None]
    return made


class _TracingPause:
    """A block in which this thread is not seen: torch.jit.trace() keeps what is called in it, with the lines."""

    __slots__ = ("_active", "_tap", "_writes")

    def __init__(self, tap: ForwardTap) -> None:
        self._tap = tap

    def __enter__(self) -> None:
        tap = self._tap
        self._active = tap.active
        if self._active:
            tap.blind(TRACED)
            tap.switch(False)
            tap.see_conversions(False)
        self._writes = tap.leave_writes()
        tap.muted.depth += 1

    def __exit__(self, *exc_info: object) -> None:
        tap = self._tap
        tap.muted.depth -= 1
        if self._active:
            tap.switch(True)
            tap.see_conversions(True)
        elif self._writes:
            tap.enter_writes()


# --- what has no hook of its own --------------------------------------------------------------------------------------


def _patch_modules(tap: ForwardTap) -> Callable[[], None]:
    """See modules: global hooks, even such as do nothing, take several times as long as a call of a module."""
    original = module.Module._call_impl

    def _call_impl(self: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or _is_tracing():
            return original(self, *args, **kwargs)
        tap.module_entered(self)
        try:
            output = original(self, *args, **kwargs)
        except Exception:
            tap.module_left(self, args, None)
            raise
        tap.module_left(self, args, output)
        return output

    leave_uncompiled(_call_impl, calls=False)
    return replace(module.Module, "_call_impl", original, _call_impl)


def _patch_function(tap: ForwardTap) -> Callable[[], None]:
    """See custom Functions, which a function mode does not."""
    original = Function.__dict__["apply"]

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            tap.applied(cls, (*args, *kwargs.values()))
        except Exception as error:
            tap.failed(error)
        before = _sequence_nr()
        result = original.__get__(None, cls)(*args, **kwargs)
        try:
            numbers = range(before, _sequence_nr())
            if numbers and tap.nodes and tap.active:
                with torch._C.DisableTorchFunction():
                    tap.note(numbers, result, args)
        except Exception as error:
            tap.failed(error)
        return result

    return replace(Function, "apply", original, classmethod(apply))


def _patch_zero_grad(tap: ForwardTap) -> Callable[[], None]:
    """Have an optimizer let go of gradients unseen: it asks each parameter, and nothing is recorded or written."""
    original = Optimizer.zero_grad

    @functools.wraps(original)
    def zero_grad(self: Any, set_to_none: bool = True) -> None:
        if _traced() or not set_to_none or not tap.active:
            return original(self, set_to_none)
        tap.switch(False)
        try:
            return original(self, set_to_none)
        finally:
            tap.switch(True)

    leave_uncompiled(zero_grad)
    return replace(Optimizer, "zero_grad", original, zero_grad)


def _patch_scripts(tap: ForwardTap) -> Callable[[], None]:
    """Hear of what TorchScript writes, whose calls a function mode does not see."""
    undo = [_patch_script(tap, kind) for kind in (torch._C.ScriptFunction, torch._C.ScriptMethod)]

    def restore() -> None:
        for step in undo:
            step()

    return restore


def _patch_script(tap: ForwardTap, kind: Any) -> Callable[[], None]:
    original = kind.__call__

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        listening = bool(tap.writes) and tap.active and tap.enter_writes()
        try:
            return original(self, *args, **kwargs)
        finally:
            if listening:
                tap.leave_writes()

    leave_uncompiled(call, calls=False)
    return replace(kind, "__call__", original, call)


def _patch_conversions(tap: ForwardTap) -> Callable[[], None]:
    """See tensors made of somebody else's memory, which a function mode does not: an array has no mode."""
    undo = [_patch_conversion(tap, name) for name in CONVERSIONS]

    def restore() -> None:
        for step in undo:
            step()

    return restore


def _patch_conversion(tap: ForwardTap, name: str) -> Callable[[], None]:
    original = getattr(torch, name)

    @functools.wraps(original)
    def convert(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        try:
            if not _traced() and tap.active and tap.writes and type(result) is _TENSOR and lies_in(result, name, args):
                tap.shared(result, f"{name}()")
        except Exception as error:
            tap.failed(error)
        return result

    leave_uncompiled(convert)
    return replace(torch, name, original, convert)


def lies_in(tensor: torch.Tensor, name: str, args: tuple[Any, ...]) -> bool:
    """Whether a tensor lies in the memory that it was made of: as_tensor() and asarray() may have copied that."""
    if name not in ("as_tensor", "asarray"):
        return True
    array = args[0] if args else None
    return isinstance(array, numpy.ndarray) and array.size > 0 and array.ctypes.data == tensor.data_ptr()


def _patch_threads(tap: ForwardTap) -> Callable[[], None]:
    """Have the threads that the program starts enter the mode, and leave it before they end.

    A mode that were left on a thread's stack would need the interpreter's lock when the thread is torn down.
    """
    original = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def bootstrap(self: threading.Thread) -> None:
        tap.enter_thread()
        try:
            original(self)
        finally:
            tap.leave_thread()

    return replace(threading.Thread, "_bootstrap_inner", original, bootstrap)


def _nothing() -> None:
    """Undo nothing."""


def replace(owner: Any, name: str, original: Any, replacement: Any) -> Callable[[], None]:
    """Put something in the place of a function or property; return what puts that back."""
    inherited = name not in vars(owner)
    setattr(owner, name, replacement)

    def restore() -> None:
        # A function by which other code has replaced it meanwhile stays.
        if vars(owner).get(name) is not replacement:
            return
        if inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, original)

    return restore


def _on_stack(mode: TorchFunctionMode) -> bool:
    depth, get = torch._C._len_torch_function_stack(), torch._C._get_function_stack_at
    # As a rule it is the only one.
    return depth > 0 and (get(depth - 1) is mode or any(get(i) is mode for i in range(depth - 1)))


def _take_off_stack(mode: TorchFunctionMode) -> int:
    """Remove a mode wherever it stands, for the program may have entered others since; return how many."""
    if not _on_stack(mode):
        return 0
    above = []
    while (top := torch._C._pop_torch_function_stack()) is not mode:
        above.append(top)
    for other in reversed(above):
        torch._C._push_on_torch_function_stack(other)
    return len(above)


def _put_on_stack(mode: TorchFunctionMode, above: int) -> None:
    """Enter a mode below those that the program has entered since: leaving one of them takes off what is topmost."""
    count = min(above, torch._C._len_torch_function_stack())
    others = [torch._C._pop_torch_function_stack() for _ in range(count)]
    for each in (mode, *reversed(others)):
        torch._C._push_on_torch_function_stack(each)


def _take_off_when_back(mode: TorchFunctionMode) -> None:
    """Remove a mode that a call, such as backward(), hides from what it runs, as soon as it is back on the stack."""
    if sys.getprofile() is not None:
        return
    left = _MOST_LOOKS

    def look(*_: Any) -> None:
        nonlocal left
        left -= 1
        if _on_stack(mode):
            _take_off_stack(mode)
            left = 0
        if left <= 0:
            sys.setprofile(None)

    sys.setprofile(look)


_MOST_LOOKS = 200  # calls and returns; it may have been taken off before

forward_tap = ForwardTap()
