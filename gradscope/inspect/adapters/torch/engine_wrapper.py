"""The wrapper round PyTorch's engine: backward() and grad() become tasks that observers hear of."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._guards import TracingContext
from torch.autograd import graph as autograd_graph

from ....runtime.call_sites import user_site
from ..guarded_observer import AdapterGuard, adapter_failed
from ..protocol import Observer
from .forward_pass import forward_tap
from .observed_backward import TorchTask
from .transforms.functorch import BLIND
from .transforms.jit_tracing import TRACED
from .transforms.torch_compile import leave_uncompiled
from .warning_lines import uncounted

__all__ = ["ENGINE", "HOLDERS", "BackwardTap", "backward_tap", "blindness", "is_compiling"]

ENGINE = "_engine_run_backward"
"""The function that calls the engine."""

HOLDERS = (autograd_graph, torch.autograd)
"""The modules that hold the name: torch.autograd.backward and grad look it up in their own."""


class BackwardTap:
    """The wrapper in the engine's place: there is one, and it is in place while somebody observes."""

    def __init__(self) -> None:
        self._observers: tuple[Observer, ...] = ()
        self._passing: tuple[Observer, ...] = ()
        self._resting: tuple[Observer, ...] = ()
        self._originals: list[Any] = []
        self._lock = threading.Lock()
        self._local = threading.local()

    def add(self, observer: Observer) -> None:
        """Tell `observer` of every backward."""
        with self._lock:
            self._observers = (*self._observers, observer)
            if len(self._observers) + len(self._resting) == 1:
                self._originals = [getattr(holder, ENGINE) for holder in HOLDERS]
                self._run = self._wrapped(self._originals[0])
                for holder in HOLDERS:
                    setattr(holder, ENGINE, self._run)

    def remove(self, observer: Observer) -> None:
        """Tell it no more."""
        with self._lock:
            self._observers = tuple(o for o in self._observers if o is not observer)
            self._passing = tuple(o for o in self._passing if o is not observer)
            self._resting = tuple(o for o in self._resting if o is not observer)
            if self._observers or self._resting:
                return
            for holder, original in zip(HOLDERS, self._originals):
                # A function by which other code has replaced it meanwhile stays.
                if getattr(holder, ENGINE) is self._run:
                    setattr(holder, ENGINE, original)

    def pass_by(self, observer: Observer, on: bool) -> None:
        """Tell it of nodes in passing, or as usual again."""
        with self._lock:
            others = tuple(o for o in self._passing if o is not observer)
            self._passing = (*others, observer) if on else others

    def rest(self, observer: Observer, on: bool) -> None:
        """Tell it only that a backward begins, or of all again."""
        with self._lock:
            if not any(one is observer for one in (*self._observers, *self._resting)):
                return
            heard = tuple(o for o in self._observers if o is not observer)
            resting = tuple(o for o in self._resting if o is not observer)
            self._observers = heard if on else (*heard, observer)
            self._resting = (*resting, observer) if on else resting

    def passes_by(self, observers: Sequence[Observer]) -> bool:
        """Whether all of these are told in passing; who is not must hear of each node before it runs."""
        passing = self._passing
        return bool(passing) and all(observer in passing for observer in observers)

    @contextmanager
    def unheard(self) -> Iterator[None]:
        """Run backwards on this thread without telling observers."""
        self._local.unheard = self._unheard() + 1
        try:
            yield
        finally:
            self._local.unheard -= 1

    def _unheard(self) -> int:
        depth: int = getattr(self._local, "unheard", 0)
        return depth

    def _wrapped(self, original: Any) -> Any:
        def engine_run_backward(outputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            # The compiler differentiates what it compiles; the program has called no backward then.
            if self._unheard() or is_compiling():
                return original(outputs, *args, **kwargs)
            for observer in self._resting:  # each may begin to listen
                observer.backward_passes()
            observers = self._observers
            if not observers:
                return original(outputs, *args, **kwargs)
            reason = ""
            with AdapterGuard(observers):
                reason = blindness()
                for observer in observers if reason else ():
                    observer.blind_region(reason)
            if reason:
                return original(outputs, *args, **kwargs)
            return _observed(original, observers, outputs, args, kwargs)

        uncounted(engine_run_backward)
        leave_uncompiled(engine_run_backward, calls=False)
        return engine_run_backward


def _observed(original: Any, observers: Sequence[Observer], outputs: Any, args: Any, kwargs: Any) -> Any:
    grads, keep_graph, create_graph, inputs, *rest = args
    try:
        task = TorchTask(
            observers,
            outputs,
            inputs,
            keep_graph=bool(keep_graph),
            create_graph=bool(create_graph),
            accumulate=bool(kwargs.get("accumulate_grad", False)),
            site=user_site(3),
            grads=grads,
            passes_by=backward_tap.passes_by,
            accumulates=forward_tap.accumulates if forward_tap.writes else None,
        )
    except Exception as error:
        adapter_failed(observers, error)
        return original(outputs, *args, **kwargs)
    own = AdapterGuard(observers)
    leave_engine = forward_tap.enter_engine()
    try:
        with own:
            task.start()
        result = original(outputs, grads, task.keep_graph, create_graph, inputs, *rest, **kwargs)
    except BaseException as error:
        with own:
            task.fail(error)
        raise
    finally:
        with own:
            task.close()
        leave_engine()
    with own:
        task.finish()
    return result


def is_compiling() -> bool:
    """Whether torch.compile reads a backward, rather than that it is run."""
    return torch.compiler.is_compiling() or TracingContext.try_get() is not None


def blindness() -> str:
    """Return why a backward that is called now cannot be looked into, or an empty string."""
    if BLIND and torch._C._are_functorch_transforms_active():
        return BLIND
    if torch.jit.is_tracing():
        return TRACED
    if _compiled_autograd():
        return "compiled autograd replaces the engine"
    return ""


def _compiled_autograd() -> bool:
    module = sys.modules.get("torch._dynamo.compiled_autograd")
    return bool(module is not None and getattr(module, "compiled_autograd_enabled", False))


uncounted(_observed)
leave_uncompiled(_observed, calls=False)
# Where Dynamo reads this function, is_compiling() would say that it is compiled.
leave_uncompiled(is_compiling, blindness, user_site, BackwardTap._unheard)

backward_tap = BackwardTap()
