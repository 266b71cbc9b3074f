"""Calls a module, with the hooks before and after forward and backward, its own and those for all, and events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...runtime import events, state
from ...runtime.graph.hooks import HookTable, RemovableHandle, add_hook
from ...runtime.tensor.tensor import Tensor
from ...runtime.user_warnings import warn

__all__ = [
    "Callee",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

Hook = Callable[..., Any]

# --- hooks of all modules ---------------------------------------------------------------------------------------------

_forward_pre_hooks: HookTable = HookTable()
_forward_hooks: HookTable = HookTable()
_forward_hooks_always_called: set[int] = set()
_forward_hooks_with_kwargs: set[int] = set()
_backward_pre_hooks: HookTable = HookTable()
_backward_hooks: HookTable = HookTable()
_backward_hooks_are_full: bool | None = None
_registration_hooks: dict[str, HookTable] = {
    "parameter": HookTable(),
    "module": HookTable(),
    "buffer": HookTable(),
}

_BOTH_KINDS = (
    "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."
)


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, args)`` before the forward of every module; what it returns replaces the arguments."""
    return add_hook(_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after the forward of every module; what it returns replaces the output."""
    handle = add_hook(_forward_hooks, hook)
    if with_kwargs:
        _forward_hooks_with_kwargs.add(handle.id)
    if always_call:
        _forward_hooks_always_called.add(handle.id)
    return handle


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` when the gradients of a module's outputs are there, for every module."""
    return add_hook(_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` when the gradients of a module's inputs are there."""
    return _register_global_backward(hook, full=True)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` on the last node of every module: the non-full form."""
    return _register_global_backward(hook, full=False)


def _register_global_backward(hook: Hook, *, full: bool) -> RemovableHandle:
    global _backward_hooks_are_full
    if _backward_hooks and _backward_hooks_are_full is not full:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )
    _backward_hooks_are_full = full
    return add_hook(_backward_hooks, hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` when any module gets a parameter; what it returns replaces it."""
    return add_hook(_registration_hooks["parameter"], hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` when any module gets a submodule; what it returns replaces it."""
    return add_hook(_registration_hooks["module"], hook)


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` when any module gets a buffer; what it returns replaces it."""
    return add_hook(_registration_hooks["buffer"], hook)


def registered(kind: str, module: Any, name: str, value: Any) -> Any:
    """Return what the registration hooks make of a new parameter, module or buffer."""
    for hook in _registration_hooks[kind].values():
        replaced = hook(module, name, value)
        if replaced is not None:
            value = replaced
    return value


def _call_as_implemented(self: Any, *args: Any, **kwargs: Any) -> Any:
    return self._call_impl(*args, **kwargs)


# --- one module -------------------------------------------------------------------------------------------------------


class Callee:
    """The part of a module that runs forward between its hooks."""

    forward: Callable[..., Any]
    _backward_pre_hooks: HookTable
    _backward_hooks: HookTable
    _is_full_backward_hook: bool | None
    _forward_hooks: HookTable
    _forward_hooks_with_kwargs: set[int]
    _forward_hooks_always_called: set[int]
    _forward_pre_hooks: HookTable
    _forward_pre_hooks_with_kwargs: set[int]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run forward, with hooks and events where there are any."""
        if (
            state.special
            or self._forward_pre_hooks
            or self._forward_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _forward_pre_hooks
            or _forward_hooks
            or _backward_hooks
            or _backward_pre_hooks
        ):
            return self._call_attended(args, kwargs)
        return self.forward(*args, **kwargs)

    _call_impl = __call__

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A call goes straight to what PyTorch calls through _call_impl, unless a subclass has another one.
        if "_call_impl" in cls.__dict__ and "__call__" not in cls.__dict__:
            cls.__call__ = _call_as_implemented  # type: ignore[method-assign]

    def _call_attended(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run forward with its hooks and events."""
        # Where forward raises, the arguments as pre-hooks have left them and the hooks that were called are needed.
        given: list[Any] = [args, kwargs]
        called: set[int] = set()
        try:
            return self._call_with_hooks(given, called)
        except Exception:
            self._call_remaining(given[0], given[1], called)
            raise

    def _call_with_hooks(self, given: list[Any], called: set[int]) -> Any:
        args, kwargs = given
        if _forward_pre_hooks or self._forward_pre_hooks:
            given[:] = args, kwargs = self._run_forward_pre_hooks(args, kwargs)
        if state.special and events.wanted(events.ModuleForwardPre):
            events.emit(events.ModuleForwardPre(self, args))
        full, non_full, pre = self._collect_backward_hooks()
        watcher = None
        if full or pre:
            from .backward_hooks import BackwardHook  # autograd loads with the first backward hook

            watcher = BackwardHook(self, full, pre)
            args = watcher.setup_input_hook(args)
        output = self.forward(*args, **kwargs)
        if _forward_hooks or self._forward_hooks:
            output = self._run_forward_hooks(args, kwargs, output, called)
        if watcher is not None:
            output = self._watch_output(watcher, output)
        if non_full:
            from .backward_hooks import hook_output_node  # autograd loads with the first backward hook

            hook_output_node(self, non_full, output)
        if state.special and events.wanted(events.ModuleForward):
            events.emit(events.ModuleForward(self, args, output))
        return output

    def _watch_output(self, watcher: Any, output: Any) -> Any:
        if isinstance(output, (Tensor, tuple)):
            return watcher.setup_output_hook(output)
        if watcher.is_of_user:
            warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(output)}",
            )
        return output

    def _run_forward_pre_hooks(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        for hook_id, hook in (*_forward_pre_hooks.items(), *self._forward_pre_hooks.items()):
            if hook_id in self._forward_pre_hooks_with_kwargs:
                replaced = hook(self, args, kwargs)
                if replaced is not None:
                    if not (isinstance(replaced, tuple) and len(replaced) == 2):
                        raise RuntimeError(
                            "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got "
                            f"{replaced}."
                        )
                    args, kwargs = replaced
                continue
            replaced = hook(self, args)
            if replaced is not None:
                args = replaced if isinstance(replaced, tuple) else (replaced,)
        return args, kwargs

    def _run_forward_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any, called: set[int]) -> Any:
        with_kwargs = _forward_hooks_with_kwargs | self._forward_hooks_with_kwargs
        for hook_id, hook in (*_forward_hooks.items(), *self._forward_hooks.items()):
            called.add(hook_id)
            if hook_id in with_kwargs:
                replaced = hook(self, args, kwargs, output)
            else:
                replaced = hook(self, args, output)
            if replaced is not None:
                output = replaced
        return output

    def _call_remaining(self, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]) -> None:
        """Call the hooks that want to be called even when forward failed; what they raise is only a warning."""
        always = _forward_hooks_always_called | self._forward_hooks_always_called
        for hook_id, hook in (*_forward_hooks.items(), *self._forward_hooks.items()):
            if hook_id not in always or hook_id in called:
                continue
            try:
                if hook_id in _forward_hooks_with_kwargs | self._forward_hooks_with_kwargs:
                    hook(self, args, kwargs, None)
                else:
                    hook(self, args, None)
            except Exception as error:
                warn(
                    "module forward hook with ``always_call=True`` raised an exception that was silenced as another "
                    f"error was raised in forward: {error}",
                )

    def _collect_backward_hooks(self) -> tuple[list[Hook], list[Hook], list[Hook]]:
        """Return the full, the non-full and the pre hooks that apply, global ones first."""
        full: list[Hook] = []
        non_full: list[Hook] = []
        if _backward_hooks:
            (full if _backward_hooks_are_full else non_full).extend(_backward_hooks.values())
        if self._backward_hooks:
            (full if self._is_full_backward_hook else non_full).extend(self._backward_hooks.values())
        if state.special and (events.wanted(events.ModuleBackward) or events.wanted(events.ModuleBackwardPre)):
            from .backward_hooks import event_hook  # autograd loads with the first backward hook

            full.append(event_hook)
        return full, non_full, [*_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    # --- hooks ---

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before forward; what it returns replaces the arguments.

        Parameters
        ----------
        prepend : bool
            Call it before the hooks already there.
        with_kwargs : bool
            Call ``hook(module, args, kwargs)``; it may return a pair.
        """
        handle = add_hook(self._forward_pre_hooks, hook, prepend=prepend)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs.add(handle.id)
        return handle

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after forward; what it returns replaces the output.

        Parameters
        ----------
        prepend : bool
            Call it before the hooks already there.
        with_kwargs : bool
            Call ``hook(module, args, kwargs, output)``.
        always_call : bool
            Call it even when forward raised, with None as output.
        """
        handle = add_hook(self._forward_hooks, hook, prepend=prepend)
        if with_kwargs:
            self._forward_hooks_with_kwargs.add(handle.id)
        if always_call:
            self._forward_hooks_always_called.add(handle.id)
        return handle

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when the gradients of the outputs are there; what it returns replaces
        them.
        """  # noqa: D205
        return add_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs are there.

        What it returns replaces ``grad_input``.
        """
        if self._is_full_backward_hook is False:
            raise RuntimeError(_BOTH_KINDS)
        self._is_full_backward_hook = True
        return add_hook(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` on the last node of the module.

        This is the non-full form: with several operators in a module, ``grad_input`` is that of the last one. Prefer
        :meth:`register_full_backward_hook`.
        """
        if self._is_full_backward_hook is True:
            raise RuntimeError(_BOTH_KINDS)
        self._is_full_backward_hook = False
        return add_hook(self._backward_hooks, hook)
