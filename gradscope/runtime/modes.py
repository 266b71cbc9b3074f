"""Modes: no_grad, enable_grad, inference_mode, anomaly detection, saved-tensor hooks.

Each is a context manager; the grad modes are decorators too. All but anomaly mode belong to the thread that entered
them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from . import state
from .user_warnings import warn

__all__ = [
    "detect_anomaly",
    "disable_saved_tensors_hooks",
    "enable_grad",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "saved_tensors_hooks",
    "set_detect_anomaly",
    "set_grad_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])


def is_grad_enabled() -> bool:
    """Return whether operators are recorded on this thread.

    See Also
    --------
    set_grad_enabled, no_grad

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.is_grad_enabled()
    True
    """
    return state.local.grad_enabled is not False


def is_inference_mode_enabled() -> bool:
    """Return whether this thread is in inference mode.

    See Also
    --------
    inference_mode

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.is_inference_mode_enabled()
    False
    """
    return state.local.inference


class _GradMode:
    """A context manager that is a decorator too, of functions and generators."""

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):
            return self._decorate_generator(function)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]

    def _decorate_generator(self, function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            resume, sent = generator.send, None
            while True:
                with self.clone():
                    try:
                        item = resume(sent)
                    except StopIteration as stop:
                        return stop.value
                try:
                    resume, sent = generator.send, (yield item)
                except GeneratorExit:
                    with self.clone():
                        generator.close()
                    raise
                except BaseException as error:
                    resume, sent = generator.throw, error

        return wrapper

    def clone(self) -> Any:
        """Return a fresh manager of the same mode."""
        return type(self)()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc_info: object) -> None:
        raise NotImplementedError


class no_grad(_GradMode):  # noqa: N801 - PyTorch's name
    """Record nothing: results do not require grad.

    See Also
    --------
    enable_grad, inference_mode, Tensor.detach

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.ones(2, requires_grad=True)
    >>> with gs.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    __slots__ = ("_before",)

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """Return a manager, or `function` decorated by one."""
        manager = object.__new__(cls)
        return manager if function is None else manager(function)

    def __enter__(self) -> None:
        modes = state.local
        self._before = before = modes._records
        # This is written out, because small functions are called under no_grad by the thousand.
        modes._records = False
        if before:
            state.unrecorded.append(None)

    def __exit__(self, *exc_info: object) -> None:
        state.local.grad_enabled = self._before


class enable_grad(no_grad):  # noqa: N801 - PyTorch's name
    """Record again inside a :class:`no_grad` block.

    See Also
    --------
    no_grad, set_grad_enabled

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.ones(2, requires_grad=True)
    >>> with gs.no_grad():
    ...     with gs.enable_grad():
    ...         y = x * 2
    >>> y.requires_grad
    True
    """

    __slots__ = ()

    def __enter__(self) -> None:
        modes = state.local
        self._before = modes.grad_enabled
        modes.grad_enabled = state.UNRECORDED if modes.inference else True


class set_grad_enabled(_GradMode):  # noqa: N801 - PyTorch's name
    """Set whether operators are recorded, at once and, as a context manager, until the end of the block.

    See Also
    --------
    no_grad, is_grad_enabled

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.ones(2, requires_grad=True)
    >>> with gs.set_grad_enabled(False):
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        self.mode = mode
        self._before = state.local.grad_enabled
        self.__enter__()

    def __call__(self, function: F) -> F:
        """Decorate `function`; the mode is not set outside it."""
        state.local.grad_enabled = self._before
        return super().__call__(function)

    def clone(self) -> set_grad_enabled:
        """Return a fresh manager of the same mode."""
        return type(self)(self.mode)

    def __enter__(self) -> None:
        enabled = state.UNRECORDED if state.local.inference else True
        state.local.grad_enabled = enabled if self.mode else False

    def __exit__(self, *exc_info: object) -> None:
        state.local.grad_enabled = self._before


class inference_mode(_GradMode):  # noqa: N801 - PyTorch's name
    """Like :class:`no_grad`, and tensors made inside never take part in autograd and have no version.

    Parameters
    ----------
    mode : bool
        False leaves inference mode for the block.

    See Also
    --------
    no_grad, is_inference

    Examples
    --------
    >>> import gradscope as gs
    >>> with gs.inference_mode():
    ...     y = gs.ones(2) * 2
    >>> y.is_inference()
    True
    """

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        """Return a manager, or, given a function, that function decorated."""
        manager = object.__new__(cls)
        manager.mode = mode is not False
        return manager(mode) if callable(mode) else manager

    def __init__(self, mode: Any = True) -> None:
        self.mode: bool = mode is not False

    def clone(self) -> inference_mode:
        """Return a fresh manager of the same mode."""
        return type(self)(self.mode)

    def __enter__(self) -> None:
        modes = state.local
        self._before = (modes.inference, modes.grad_enabled)
        modes.inference, modes.grad_enabled = self.mode, not self.mode
        state.add_modes(1)

    def __exit__(self, *exc_info: object) -> None:
        state.local.inference, state.local.grad_enabled = self._before
        state.add_modes(-1)


# --- anomaly mode -----------------------------------------------------------------------------------------------------


def is_anomaly_enabled() -> bool:
    """Return whether anomaly mode is on (in the whole process).

    See Also
    --------
    autograd.detect_anomaly, autograd.set_detect_anomaly

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.autograd.is_anomaly_enabled()
    False
    """
    return state.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly mode looks for NaN.

    See Also
    --------
    gradscope.autograd.detect_anomaly : switches the mode, and the look for NaN, on.

    Examples
    --------
    >>> import gradscope as gs
    >>> with gs.autograd.set_detect_anomaly(True, check_nan=False):
    ...     gs.is_anomaly_check_nan_enabled()
    False
    """
    return state.anomaly_check_nan


class set_detect_anomaly:  # noqa: N801 - PyTorch's name
    """Set anomaly mode, at once and, as a context manager, until the end of the block.

    While it is on every node keeps the stack of the call that made it, and a node that produces NaN raises.

    Parameters
    ----------
    check_nan : bool
        Raise for NaN.
    check_inf : bool
        Raise for Inf as well (gradscope's own).

    See Also
    --------
    detect_anomaly

    Examples
    --------
    >>> import gradscope as gs
    >>> with gs.autograd.set_detect_anomaly(True):
    ...     print(gs.is_anomaly_enabled())
    True
    """

    def __init__(self, mode: bool, check_nan: bool = True, check_inf: bool = False) -> None:
        self._before = (state.anomaly, state.anomaly_check_nan, state.anomaly_check_inf)
        _set_anomaly(mode, check_nan, check_inf)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        _set_anomaly(*self._before)


class detect_anomaly:  # noqa: N801 - PyTorch's name
    """Context manager: anomaly mode on, with a warning that it is slow. See :class:`set_detect_anomaly`.

    See Also
    --------
    set_detect_anomaly, inspect.nan_origin

    Examples
    --------
    >>> import gradscope as gs
    >>> with gs.autograd.set_detect_anomaly(True):
    ...     print(gs.autograd.is_anomaly_enabled())
    True
    >>> gs.autograd.is_anomaly_enabled()
    False
    """

    def __init__(self, check_nan: bool = True, check_inf: bool = False) -> None:
        self._wanted = (True, check_nan, check_inf)
        warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
        )

    def __enter__(self) -> None:
        self._before = (state.anomaly, state.anomaly_check_nan, state.anomaly_check_inf)
        _set_anomaly(*self._wanted)

    def __exit__(self, *exc_info: object) -> None:
        _set_anomaly(*self._before)


def _set_anomaly(mode: bool, check_nan: bool, check_inf: bool) -> None:
    state.add_modes(int(mode) - int(state.anomaly))
    state.anomaly, state.anomaly_check_nan, state.anomaly_check_inf = mode, check_nan, check_inf


def report_anomaly(node: Any, index: int, found: str) -> None:
    """Raise for a NaN or Inf that `node` produced, with the stack of the forward call."""
    parent = node
    seen = 0
    while parent is not None and seen < 16:
        _warn_of(parent, node)
        parent = parent.metadata.get("parent_")
        seen += 1
    error = RuntimeError(
        f"Function '{node.name()}' returned {found} values in its {index}th output.\n"
        "The warnings above show the forward call that made it; `gradscope debug` stops there."
    )
    site = node.call_site
    if site is not None:
        error.add_note("Forward call that made the node (most recent call last):\n" + site.format())
    raise error


def _warn_of(node: Any, failing: Any) -> None:
    site = node.metadata.get("traceback_")
    if node is failing:
        head = f"Error detected in {node.name()}. "
    else:
        head = f"\n\nPrevious calculation was induced by {node.name()}. "
    if site is None:
        text = "No forward pass information available. Enable detect anomaly during forward pass for more information."
    else:
        text = "Traceback of forward call that caused the error:\n" + site.format()
    warn(head + text)


# --- saved tensor hooks -----------------------------------------------------------------------------------------------


class saved_tensors_hooks:  # noqa: N801 - PyTorch's name
    """Context manager: what nodes save goes through `pack_hook`, and through `unpack_hook` when they run.

    Only the innermost pair of a thread applies. The version check does not apply to packed tensors.

    Parameters
    ----------
    pack_hook : callable
        ``pack_hook(tensor) -> object``; must not write to the tensor.
    unpack_hook : callable
        ``unpack_hook(object) -> tensor``.

    See Also
    --------
    save_on_cpu, utils.checkpoint.checkpoint

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.ones(2, requires_grad=True)
    >>> with gs.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda values: gs.tensor(values)):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        modes = state.local
        if modes.saved_hooks_disabled is not None:
            raise RuntimeError(modes.saved_hooks_disabled)
        modes.saved_hooks = (*modes.saved_hooks, (self.pack_hook, self.unpack_hook))
        state.add_modes(1)

    def __exit__(self, *exc_info: object) -> None:
        state.local.saved_hooks = state.local.saved_hooks[:-1]
        state.add_modes(-1)


class save_on_cpu(saved_tensors_hooks):  # noqa: N801 - PyTorch's name
    """Context manager: saved tensors wait in host memory and return to their device when needed.

    Parameters
    ----------
    pin_memory : bool
        Accepted for PyTorch's sake; CuPy's own pool decides.

    See Also
    --------
    saved_tensors_hooks, utils.checkpoint.checkpoint

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.ones(2, requires_grad=True)
    >>> with gs.autograd.graph.save_on_cpu():
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Any) -> tuple[Any, Any]:
            return tensor.device, tensor.detach().cpu().clone()

        def unpack(packed: tuple[Any, Any]) -> Any:
            place, tensor = packed
            return tensor.to(place)

        super().__init__(pack, unpack)


class disable_saved_tensors_hooks(_GradMode):  # noqa: N801 - PyTorch's name
    """Context manager: entering :class:`saved_tensors_hooks` inside raises `error_message`.

    See Also
    --------
    saved_tensors_hooks

    Examples
    --------
    >>> import gradscope as gs
    >>> with gs.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
    ...     y = gs.ones(2, requires_grad=True).exp()
    """

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message

    def clone(self) -> disable_saved_tensors_hooks:
        """Return a fresh manager with the same message."""
        return type(self)(self.error_message)

    def __enter__(self) -> None:
        modes = state.local
        if modes.saved_hooks:
            raise RuntimeError(self.error_message)
        self._before = modes.saved_hooks_disabled
        modes.saved_hooks_disabled = self.error_message

    def __exit__(self, *exc_info: object) -> None:
        state.local.saved_hooks_disabled = self._before
