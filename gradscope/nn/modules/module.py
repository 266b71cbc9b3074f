"""Module: a function with parameters, the base of all networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ...runtime.graph.hooks import HookTable
from ...runtime.memory import dtype as dtypes
from ...runtime.modes import no_grad
from ...runtime.ops.shape.copy_and_cast import destination
from ...runtime.tensor.tensor import Tensor
from ..parameter import Buffer, Parameter, is_lazy
from . import calling
from .calling import *  # noqa: F403 - PyTorch has the hooks of all modules here
from .calling import Callee, registered
from .state_dict import Stateful

__all__ = ["Module", *(name for name in calling.__all__ if name != "Callee")]

M = TypeVar("M", bound="Module")

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


class Module(Callee, Stateful):
    """Base of all network modules.

    A subclass calls ``super().__init__()``, assigns its parameters and submodules as attributes, and defines
    ``forward``. Calling the module runs hooks and ``forward``.

    Attributes
    ----------
    training : bool
        Whether the module is in training mode, see :meth:`train`.

    See Also
    --------
    Sequential, Parameter

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
    _modules: dict[str, Module | None]

    def __init__(self) -> None:
        self.__dict__.update(training=True, _parameters={}, _buffers={}, _modules={}, **_without_hooks())

    def forward(self, *input: Any) -> Any:
        """Compute the output; a subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

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
            self._modules[name] = registered("module", self, name, value)
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
                (
                    self._non_persistent_buffers_set.discard
                    if value.persistent
                    else self._non_persistent_buffers_set.add
                )(name)
            buffers[name] = registered("buffer", self, name, value)
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
        self._parameters[name] = None if param is None else registered("parameter", self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make `tensor` a buffer: part of the state, but no parameter.

        Parameters
        ----------
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
        self._buffers[name] = registered("buffer", self, name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Make `module` a submodule, as assigning it to an attribute does."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_type_of(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = registered("module", self, name, module)

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
            raise AttributeError(
                f"{type(module).__name__} has no attribute `{name}`"
                if not hasattr(module, name)
                else f"`{name}` is not an nn.Parameter"
            )
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

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yield this module and all below it; what stands at several places once, unless told otherwise."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
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
            if is_lazy(parameter):
                parameter._convert(fn)  # type: ignore[attr-defined]
                continue
            with no_grad():
                parameter.data = fn(parameter)
                if parameter.grad is not None:
                    grad = fn(parameter.grad)
                    parameter.grad = None
                    parameter.grad = grad
        for name, buffer in self._buffers.items():
            if is_lazy(buffer):
                buffer._convert(fn)  # type: ignore[union-attr]
            elif buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(
        self: M,
        *args: Any,
        dtype: Any = None,
        device: Any = None,
        non_blocking: bool = False,
        memory_format: Any = None,
    ) -> M:
        """Convert parameters and buffers: ``to(device)``, ``to(dtype)``, ``to(device, dtype)``, ``to(tensor)``.

        Only floating-point and complex ones change their dtype.
        """
        kind, device = destination(args, dtype, device)
        if kind is not None and not (kind.is_floating_point or kind.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={kind}")

        def convert(tensor: Tensor) -> Tensor:
            floating = tensor._dtype.kind in dtypes.INEXACT
            layout = memory_format if tensor.ndim == 4 else None
            return tensor.to(device=device, dtype=kind if floating else None, memory_format=layout)

        return self._apply(convert)

    def type(self: M, dst_type: Any) -> M:
        """Convert all parameters and buffers to a dtype."""
        return self._apply(lambda t: t.to(dst_type))

    def float(self: M) -> M:
        """Convert floating-point parameters and buffers to float32."""
        return self._apply(lambda t: t.to(dtypes.float32) if t.is_floating_point() else t)

    def double(self: M) -> M:
        """Convert floating-point parameters and buffers to float64."""
        return self._apply(lambda t: t.to(dtypes.float64) if t.is_floating_point() else t)

    def bfloat16(self: M) -> M:
        """Convert floating-point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.to(dtypes.bfloat16) if t.is_floating_point() else t)

    def half(self: M) -> M:
        """Convert floating-point parameters and buffers to float16."""
        return self._apply(lambda t: t.to(dtypes.float16) if t.is_floating_point() else t)

    def cpu(self: M) -> M:
        """Move parameters and buffers to the CPU."""
        return self.to("cpu")

    def cuda(self: M, device: Any = None) -> M:
        """Move parameters and buffers to a CUDA device."""
        return self.to("cuda" if device is None else device)

    def share_memory(self: M) -> M:
        """Return the module: arrays of one process are shared by its threads as they are."""
        return self

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
        # Older versions had fewer kinds of hooks.
        self.__dict__.update(_without_hooks() | state)


def _without_hooks() -> dict[str, Any]:
    """Return what a module holds besides its parameters, buffers and submodules."""
    return {
        "_non_persistent_buffers_set": set(),
        "_is_full_backward_hook": None,
        "_forward_hooks_with_kwargs": set(),
        "_forward_hooks_always_called": set(),
        "_forward_pre_hooks_with_kwargs": set(),
        **{name: HookTable() for name in _HOOK_TABLES},
    }


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
    meta.grad.zero_()


def _type_of(value: Any) -> str:
    return value.type() if type(value) is Tensor else type(value).__name__


def _indented(text: str, spaces: int) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])
