"""Calls that a class or a mode overrides, by ``__torch_function__``.

A subclass of Tensor keeps its class in the results of its methods, of functions and of operators. What it does in
``__torch_function__`` is asked first, about the function or method that was called, and not about the operators that it
is made of. Reading an attribute (``shape``, ``grad``, ``T``) is told as ``Tensor.shape.__get__``, writing and deleting
one as its ``__set__`` and ``__delete__``. What gradscope itself reads is not told, nor is a mode told of attributes.

Examples
--------
>>> import gradscope as gs
>>> class Logged(gs.Tensor):
...     @classmethod
...     def __torch_function__(cls, func, types, args=(), kwargs=None):
...         print(func.__name__)
...         return super().__torch_function__(func, types, args, kwargs)
>>> x = gs.ones(2).as_subclass(Logged)
>>> type(x * 2).__name__
mul
'Logged'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .runtime import state
from .runtime.tensor import overrides
from .runtime.tensor.tensor import NOT_WRAPPED

__all__ = [
    "BaseTorchFunctionMode",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return whether a mode is on, or one of the arguments takes part in calls.

    Examples
    --------
    >>> import gradscope as gs
    >>> has_torch_function((gs.ones(1), 2))
    False
    """
    modes = state.local
    return bool(modes.function_modes) or (not modes.overrides_off and bool(overrides.overloaded(relevant_args)))


def has_torch_function_unary(argument: Any) -> bool:
    """Return :func:`has_torch_function` of one argument."""
    return has_torch_function((argument,))


def has_torch_function_variadic(*arguments: Any) -> bool:
    """Return :func:`has_torch_function` of all arguments."""
    return has_torch_function(arguments)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Return what overrides the call of a function, asked where :func:`has_torch_function` is true.

    Parameters
    ----------
    public_api : callable
        The function that was called.
    relevant_args : iterable
        The arguments that may take part.
    *args, **kwargs
        What it was called with.

    Raises
    ------
    TypeError
        If nobody overrides it.

    Examples
    --------
    A function of your own that others may override, as operators do:

    >>> import gradscope as gs
    >>> class Metres:
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return f"{func.__name__} of metres"
    >>> def distance(a, b):
    ...     if has_torch_function((a, b)):
    ...         return handle_torch_function(distance, (a, b), a, b)
    ...     return (a - b).abs()
    >>> distance(Metres(), 1.0)
    'distance of metres'
    """
    result = overrides.dispatch(public_api, args, kwargs, relevant=tuple(relevant_args))
    if result is overrides.NONE:
        raise TypeError(f"no argument of {public_api.__name__}() implements __torch_function__\nCall it itself.")
    return result


def is_tensor_like(inp: Any) -> bool:
    """Return whether a value is a tensor, or takes part in calls as tensors do.

    Examples
    --------
    >>> import gradscope as gs
    >>> is_tensor_like(gs.ones(1)), is_tensor_like(1)
    (True, False)
    """
    return hasattr(inp, "__torch_function__")


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Return the functions whose results do not get the subclass: those of attributes that are tensors themselves."""
    return set(NOT_WRAPPED)


class DisableTorchFunctionSubclass:
    """Let no tensor have a say inside of a block; modes still do.

    Examples
    --------
    >>> import gradscope as gs
    >>> class Metres(gs.Tensor):
    ...     pass
    >>> x = gs.ones(1).as_subclass(Metres)
    >>> type(x + x).__name__
    'Metres'
    >>> with DisableTorchFunctionSubclass():
    ...     type(x + x).__name__
    'Tensor'
    """

    def __enter__(self) -> None:
        state.local.overrides_off += 1

    def __exit__(self, *exc_info: object) -> None:
        state.local.overrides_off -= 1


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Let neither tensors nor modes have a say inside of a block."""

    def __enter__(self) -> None:
        super().__enter__()
        self._modes = state.local.function_modes
        state.local.function_modes = ()

    def __exit__(self, *exc_info: object) -> None:
        state.local.function_modes = self._modes
        super().__exit__(*exc_info)


class TorchFunctionMode:
    """Override functions and operators inside of a block, whatever their arguments; to derive from.

    The derived class defines ``__torch_function__``. While that runs, the mode around it is the one that is asked. Of a
    plain tensor's methods the operators are told. Factories and ``backward()`` are not told, unlike in PyTorch.

    Examples
    --------
    >>> import gradscope as gs
    >>> class Halved(TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         result = func(*args, **(kwargs or {}))
    ...         return result / 2 if func.__name__ == "add" else result
    >>> with Halved():
    ...     gs.ones(1) + gs.ones(1)
    tensor([1.])
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Override a call.

        Raises
        ------
        NotImplementedError
            Unless a derived class has its own.
        """
        raise NotImplementedError(f"{type(self).__name__} overrides nothing\nDefine its __torch_function__().")

    def __enter__(self) -> TorchFunctionMode:
        state.local.function_modes = (*state.local.function_modes, self)
        state.add_overriding(1)
        return self

    def __exit__(self, *exc_info: object) -> None:
        state.add_overriding(-1)
        state.local.function_modes = state.local.function_modes[:-1]


class BaseTorchFunctionMode(TorchFunctionMode):
    """The mode that makes each call as it is."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Make a call."""
        return func(*args, **(kwargs or {}))
