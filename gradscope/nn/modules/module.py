"""Module: a function with parameters, the base of all networks."""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ...runtime import device as devices
from ...runtime import dtype as dtypes
from ...runtime import events, state
from ...runtime.hooks import HookTable, RemovableHandle, add_hook
from ...runtime.modes import no_grad
from ...runtime.tensor import Tensor
from ..parameter import Buffer, Parameter

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

M = TypeVar("M", bound="Module")
Hook = Callable[..., Any]

_IncompatibleKeys = namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])  # noqa: PYI024 - PyTorch's


class IncompatibleKeys(_IncompatibleKeys):
    """What load_state_dict() found missing and unexpected."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


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


def _registered(kind: str, module: Module, name: str, value: Any) -> Any:
    for hook in _registration_hooks[kind].values():
        replaced = hook(module, name, value)
        if replaced is not None:
            value = replaced
    return value


# --- Module -----------------------------------------------------------------------------------------------------------

_HOOK_TABLES = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_pre_hooks",
    "_forward_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class Module:
    """Base of all network modules.

    A subclass calls ``super().__init__()``, assigns its parameters and submodules as attributes, and defines
    ``forward``. Calling the module runs hooks and ``forward``.

    Attributes
    ----------
    training : bool
        Whether the module is in training mode, see :meth:`train`.

    Examples
    --------
    >>> import gradscope as gs
    >>> class Scale(gs.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = gs.nn.Parameter(gs.tensor(2.0))
    ...
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale()(gs.ones(2)).sum().item()
    4.0
    """

    training: bool
    dump_patches = False
    _version = 1

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]
    _backward_pre_hooks: HookTable
    _backward_hooks: HookTable
    _is_full_backward_hook: bool | None
    _forward_hooks: HookTable
    _forward_hooks_with_kwargs: set[int]
    _forward_hooks_always_called: set[int]
    _forward_pre_hooks: HookTable
    _forward_pre_hooks_with_kwargs: set[int]
    _state_dict_hooks: HookTable
    _state_dict_pre_hooks: HookTable
    _load_state_dict_pre_hooks: HookTable
    _load_state_dict_post_hooks: HookTable

    def __init__(self) -> None:
        put = super().__setattr__
        put("training", True)
        put("_parameters", {})
        put("_buffers", {})
        put("_non_persistent_buffers_set", set())
        put("_modules", {})
        put("_is_full_backward_hook", None)
        put("_forward_hooks_with_kwargs", set())
        put("_forward_hooks_always_called", set())
        put("_forward_pre_hooks_with_kwargs", set())
        for name in _HOOK_TABLES:
            put(name, HookTable())

    def forward(self, *input: Any) -> Any:
        """Compute the output; a subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # --- calling ---

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
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

    def _call_attended(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run forward with its hooks and events."""
        called: set[int] = set()
        try:
            return self._call_with_hooks(args, kwargs, called)
        except Exception:
            self._call_remaining(args, kwargs, called)
            raise

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]) -> Any:
        args, kwargs = self._run_forward_pre_hooks(args, kwargs)
        if state.special and events.wanted(events.ModuleForwardPre):
            events.emit(events.ModuleForwardPre(self, args))
        full, non_full, pre = self._collect_backward_hooks()
        watcher = None
        if full or pre:
            from .backward_hooks import BackwardHook

            watcher = BackwardHook(self, full, pre)
            args = watcher.setup_input_hook(args)
        output = self.forward(*args, **kwargs)
        output = self._run_forward_hooks(args, kwargs, output, called)
        if watcher is not None:
            output = self._watch_output(watcher, output)
        if non_full:
            from .backward_hooks import hook_output_node

            hook_output_node(self, non_full, output)
        if state.special and events.wanted(events.ModuleForward):
            events.emit(events.ModuleForward(self, args, output))
        return output

    def _watch_output(self, watcher: Any, output: Any) -> Any:
        if isinstance(output, (Tensor, tuple, list)):
            return watcher.setup_output_hook(output)
        warnings.warn(
            "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
            f"{type(output)}",
            stacklevel=5,
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

    def _run_forward_hooks(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any, called: set[int]
    ) -> Any:
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
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception that was silenced as another "
                    f"error was raised in forward: {error}",
                    stacklevel=4,
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
            from .backward_hooks import event_hook

            full.append(event_hook)
        return full, non_full, [*_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    # --- hooks ---

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before forward; what it returns replaces the arguments.

        Parameters
        ----------
        hook : callable
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
        hook : callable
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

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before :meth:`state_dict` collects the module."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after :meth:`state_dict`; it edits in place."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Hook) -> RemovableHandle:
        return add_hook(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, ...)`` before :meth:`load_state_dict` reads the module's entries."""

        def bound(*args: Any) -> Any:
            return hook(self, *args)

        return add_hook(self._load_state_dict_pre_hooks, bound)

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after :meth:`load_state_dict`; it may edit the lists."""
        return add_hook(self._load_state_dict_post_hooks, hook)

    # --- attributes ---

    def __setattr__(self, name: str, value: Any) -> None:
        parameters = self.__dict__.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_type_of(value)}' as parameter '{name}' (gradscope.nn.Parameter or None expected)"
                    "\nAssign gradscope.nn.Parameter(tensor), or write into it under gradscope.no_grad()."
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if "_modules" not in self.__dict__:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_parameters", "_buffers")
            self._modules[name] = _registered("module", self, name, value)
        else:
            self._set_other(name, value)

    def _set_other(self, name: str, value: Any) -> None:
        modules, buffers = self.__dict__.get("_modules"), self.__dict__.get("_buffers")
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_type_of(value)}' as child module '{name}' (gradscope.nn.Module or None expected)"
                )
            modules[name] = None
        elif isinstance(value, Buffer) or (buffers is not None and name in buffers):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{_type_of(value)}' as buffer '{name}' (gradscope.nn.Buffer, gradscope.Tensor or "
                    "None expected)"
                )
            if buffers is None:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            if isinstance(value, Buffer):
                self._forget(name, "_parameters", "_modules")
                (self._non_persistent_buffers_set.discard if value.persistent else self._non_persistent_buffers_set.add)(
                    name
                )
            buffers[name] = _registered("buffer", self, name, value)
        else:
            super().__setattr__(name, value)

    def _forget(self, name: str, *tables: str) -> None:
        self.__dict__.pop(name, None)
        for table in tables:
            entries = self.__dict__.get(table)
            if entries is not None:
                entries.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __getattr__(self, name: str) -> Any:
        for table in ("_parameters", "_buffers", "_modules"):
            entries = self.__dict__.get(table)
            if entries is not None and name in entries:
                return entries[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for table in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(table, ()):
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def _check_name(self, kind: str, name: str, table: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Make `param` a parameter of the module, as assigning it to an attribute does.

        Raises
        ------
        KeyError
            If the name is taken, empty or has a dot.
        TypeError
            If it is no Parameter.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_type_of(param)}' object to parameter '{name}' (gradscope.nn.Parameter or None "
                "required)"
            )
        self._parameters[name] = None if param is None else _registered("parameter", self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make `tensor` a buffer: part of the state, but no parameter.

        Parameters
        ----------
        name : str
        tensor : Tensor or None
        persistent : bool
            Whether it is part of :meth:`state_dict`.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_type_of(tensor)}' object to buffer '{name}' (gradscope Tensor or None required)"
            )
        self._buffers[name] = _registered("buffer", self, name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Make `module` a submodule, as assigning it to an attribute does."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_type_of(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = _registered("module", self, name, module)

    register_module = add_module

    def get_submodule(self, target: str) -> Module:
        """Return the submodule of a dotted path."""
        module: Module = self
        for part in target.split(".") if target else ():
            if not hasattr(module, part):
                raise AttributeError(f"{type(module).__name__} has no attribute `{part}`")
            module = getattr(module, part)
            if not isinstance(module, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter of a dotted path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._parameters:
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`" if not hasattr(module, name)
                                 else f"`{name}` is not an nn.Parameter")
        return module._parameters[name]  # type: ignore[return-value]

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer of a dotted path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return module._buffers[name]  # type: ignore[return-value]

    # --- walking ---

    def _named_members(
        self, members: Callable[[Module], Any], prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in members(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield (f"{path}.{name}" if path else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield (dotted name, parameter); one that occurs twice is yielded once."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield (dotted name, buffer)."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield (name, submodule) of the immediate submodules."""
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Module]:
        """Yield the immediate submodules."""
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield (dotted name, module) of this module and all below it."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """Yield this module and all below it."""
        for _, module in self.named_modules():
            yield module

    # --- changing all of it ---

    def apply(self: M, fn: Callable[[Module], None]) -> M:
        """Call `fn` with every module below this one and with this one; return this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: M, mode: bool = True) -> M:
        """Put the module and all below it into training (or evaluation) mode."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: M) -> M:
        """Put the module and all below it into evaluation mode."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Say of all parameters whether they get gradients."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters (or fill them with zeros)."""
        for parameter in self.parameters():
            clear_grad(parameter, set_to_none)

    def _apply(self: M, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> M:
        """Replace every parameter's and buffer's memory by what `fn` makes of it; the parameters stay the same."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is None:
                continue
            with no_grad():
                parameter.data = fn(parameter)
                if parameter.grad is not None:
                    grad = fn(parameter.grad)
                    parameter.grad = None
                    parameter.grad = grad
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self: M, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False, **_: Any) -> M:
        """Convert parameters and buffers: ``to(device)``, ``to(dtype)``, ``to(device, dtype)``, ``to(tensor)``.

        Only floating-point and complex ones change their dtype.
        """
        for argument in args:
            if isinstance(argument, Tensor):
                dtype, device = argument.dtype, argument.device
            elif isinstance(argument, (str, int, devices.device)) and not isinstance(argument, bool):
                device = argument
            elif argument is not None and not isinstance(argument, bool):
                dtype = argument
        kind = None if dtype is None else dtypes.to_dtype(dtype)
        if kind is not None and not (kind.is_floating_point or kind.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={kind}"
            )

        def convert(tensor: Tensor) -> Tensor:
            floating = tensor._array.dtype.kind in "fc"
            return tensor.to(device=device, dtype=kind if floating else None)  # type: ignore[attr-defined]

        return self._apply(convert)

    def type(self: M, dst_type: Any) -> M:
        """Convert all parameters and buffers to a dtype."""
        return self._apply(lambda t: t.to(dst_type))  # type: ignore[attr-defined]

    def float(self: M) -> M:
        """Convert floating-point parameters and buffers to float32."""
        return self._apply(lambda t: t.to(dtypes.float32) if t.is_floating_point() else t)  # type: ignore[attr-defined]

    def double(self: M) -> M:
        """Convert floating-point parameters and buffers to float64."""
        return self._apply(lambda t: t.to(dtypes.float64) if t.is_floating_point() else t)  # type: ignore[attr-defined]

    def half(self: M) -> M:
        """Convert floating-point parameters and buffers to float16."""
        return self._apply(lambda t: t.to(dtypes.float16) if t.is_floating_point() else t)  # type: ignore[attr-defined]

    def cpu(self: M) -> M:
        """Move parameters and buffers to the CPU."""
        return self.to("cpu")

    def cuda(self: M, device: Any = None) -> M:
        """Move parameters and buffers to a CUDA device."""
        return self.to("cuda" if device is None else device)

    def share_memory(self: M) -> M:
        """Return the module: arrays of one process are shared by its threads as they are."""
        return self

    # --- state ---

    def get_extra_state(self) -> Any:
        """Return what else :meth:`state_dict` should hold; a subclass defines it together with set_extra_state."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Take what :meth:`get_extra_state` returned."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def _has_extra(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(Module, method)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, parameter in self._parameters.items():
            if parameter is not None:
                destination[prefix + name] = parameter if keep_vars else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if self._has_extra("get_extra_state"):
            destination[prefix + "_extra_state"] = self.get_extra_state()

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Return an ordered dict of all parameters and persistent buffers, by dotted name.

        Parameters
        ----------
        destination : dict, optional
            Collect into this.
        prefix : str
            Put before every name.
        keep_vars : bool
            Do not detach.
        """
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            replaced = hook(self, destination, prefix, local)
            if getattr(hook, "_from_public_api", False):
                if replaced is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif replaced is not None:
                destination = replaced
        return destination

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        persistent = {n: b for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set}
        entries: dict[str, Any] = {**self._parameters, **persistent}
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, current in entries.items():
            if current is None:
                continue
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            problem = self._load_entry(name, current, state_dict[key], assign)
            if problem:
                error_msgs.append(f"{'size mismatch' if 'shape' in problem else 'While copying the parameter named'} "
                                  f"for {key}: {problem}")
        self._load_extra(state_dict, prefix, strict, missing_keys, unexpected_keys)
        if strict:
            self._find_unexpected(state_dict, prefix, entries, unexpected_keys)

    def _load_entry(self, name: str, current: Any, value: Any, assign: bool) -> str | None:
        if not isinstance(value, Tensor):
            return f"expected gradscope.Tensor or Tensor-like object from checkpoint but received {type(value)}"
        if value.shape != current.shape:
            return (
                f"copying a param with shape {value.shape} from checkpoint, the shape in current model is "
                f"{current.shape}."
            )
        if assign:
            if isinstance(current, Parameter) and not isinstance(value, Parameter):
                value = Parameter(value, requires_grad=current.requires_grad)
            setattr(self, name, value)
        else:
            with no_grad():
                current.copy_(value)
        return None

    def _load_extra(
        self, state_dict: Any, prefix: str, strict: bool, missing_keys: list[str], unexpected_keys: list[str]
    ) -> None:
        key = prefix + "_extra_state"
        if self._has_extra("set_extra_state"):
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)

    def _find_unexpected(self, state_dict: Any, prefix: str, entries: Any, unexpected_keys: list[str]) -> None:
        for key in state_dict:
            if key.startswith(prefix) and key != prefix + "_extra_state":
                first, _, rest = key[len(prefix) :].partition(".")
                known = first in self._modules if rest else first in entries
                if not known:
                    unexpected_keys.append(key)

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> IncompatibleKeys:
        """Copy the entries of a :meth:`state_dict` into the module and all below it.

        Parameters
        ----------
        state_dict : mapping
        strict : bool
            Raise when the names are not exactly the module's.
        assign : bool
            Take the tensors themselves instead of copying them.

        Returns
        -------
        named tuple
            ``missing_keys`` and ``unexpected_keys``.

        Raises
        ------
        RuntimeError
            With one line a problem: missing and unexpected names, shapes that differ.
        """
        if not hasattr(state_dict, "keys"):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", {})
        # Hooks may edit the names: on a copy.
        entries = OrderedDict(state_dict)
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []

        def load(module: Module, prefix: str) -> None:
            local = dict(metadata.get(prefix[:-1], {}))
            if assign:
                local["assign_to_params_buffers"] = True
            module._load_from_state_dict(entries, prefix, local, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    load(child, f"{prefix}{name}.")
            found = IncompatibleKeys(missing, unexpected)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, found) is not None:
                    raise RuntimeError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                        "values, if incompatible_keys need to be modified, it should be done inplace."
                    )

        load(self, "")
        if strict:
            if unexpected:
                errors.insert(0, f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
            if missing:
                errors.insert(0, f"Missing key(s) in state_dict: {_quoted(missing)}. ")
        if errors:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors)
            )
        return IncompatibleKeys(missing, unexpected)

    # --- text ---

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return what stands between the parentheses of the module's repr; a subclass defines it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): " + _indented(repr(module), 2) for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        if not lines and not children:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join([*lines, *children]) + "\n)"

    # --- copies ---

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def clear_grad(parameter: Tensor, set_to_none: bool) -> None:
    """Drop (or zero, cut from any history) the gradient of a leaf."""
    meta = parameter._meta
    if meta is None or meta.grad is None:
        return
    if set_to_none:
        meta.grad = None
        return
    if meta.grad.grad_fn is not None:
        meta.grad.detach_()
    else:
        meta.grad.requires_grad_(False)
    meta.grad.zero_()  # type: ignore[attr-defined]


def _type_of(value: Any) -> str:
    return value.type() if type(value) is Tensor else type(value).__name__  # type: ignore[attr-defined]


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _indented(text: str, spaces: int) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])
