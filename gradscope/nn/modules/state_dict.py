"""The state of a module: its parameters and buffers by dotted name, out and in."""

from __future__ import annotations

import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

from ...runtime.graph.hooks import HookTable, RemovableHandle, add_hook
from ...runtime.modes import no_grad
from ...runtime.tensor.tensor import Tensor
from ..parameter import Parameter, is_lazy

__all__ = ["Stateful"]

Hook = Callable[..., Any]


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """The keys that load_state_dict() found missing and unexpected."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _OfModule:
    """A hook that is given its module, which it holds weakly; it goes along when the module is copied or pickled."""

    def __init__(self, hook: Hook, module: Any) -> None:
        self.hook = hook
        self.module = weakref.ref(module)

    def __call__(self, *args: Any) -> Any:
        return self.hook(self.module(), *args)

    def __getstate__(self) -> tuple[Hook, Any]:
        return self.hook, self.module()

    def __setstate__(self, state: tuple[Hook, Any]) -> None:
        self.hook, self.module = state[0], weakref.ref(state[1])


class Stateful:
    """The part of a module that gives out its state and takes it in."""

    _version = 1

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: HookTable
    _state_dict_pre_hooks: HookTable
    _load_state_dict_pre_hooks: HookTable
    _load_state_dict_post_hooks: HookTable

    def get_extra_state(self) -> Any:
        """Return what else :meth:`state_dict` should hold; a subclass defines it together with set_extra_state."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Take what :meth:`get_extra_state` returned."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def _has_extra(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(Stateful, method)

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
        own = {**self._parameters, **persistent}
        entries = {name: value for name, value in own.items() if value is not None}
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, current in entries.items():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            problem = self._load_entry(name, current, state_dict[key], assign)
            if problem:
                error_msgs.append(
                    f"{'size mismatch' if 'shape' in problem else 'While copying the parameter named'} "
                    f"for {key}: {problem}"
                )
        self._load_extra(state_dict, prefix, strict, missing_keys, unexpected_keys)
        if strict:
            self._find_unexpected(state_dict, prefix, entries, unexpected_keys)

    def _load_entry(self, name: str, current: Any, value: Any, assign: bool) -> str | None:
        if not isinstance(value, Tensor):
            return f"expected gradscope.Tensor or Tensor-like object from checkpoint but received {type(value)}"
        lazy = is_lazy(current)
        if not lazy and current.shape == () and value.shape == (1,):
            value = value[0]  # scalars had one dimension in PyTorch 0.3
        if not lazy and value.shape != current.shape:
            return (
                f"copying a param with shape {value.shape} from checkpoint, the shape in current model is "
                f"{current.shape}."
            )
        if assign:
            if isinstance(value, Parameter):
                value.requires_grad_(current.requires_grad)
            elif isinstance(current, Parameter):
                value = Parameter(value, requires_grad=current.requires_grad)
            setattr(self, name, value)
        elif not (lazy and is_lazy(value)):
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

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> _IncompatibleKeys:
        """Copy the entries of a :meth:`state_dict` into the module and all below it.

        Parameters
        ----------
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
        # Hooks may edit the names of this copy.
        entries = OrderedDict(state_dict)
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []

        def load(module: Any, prefix: str) -> None:
            local = dict(metadata.get(prefix[:-1], {}))
            if assign:
                local["assign_to_params_buffers"] = True
            module._load_from_state_dict(entries, prefix, local, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    load(child, f"{prefix}{name}.")
            found = _IncompatibleKeys(missing, unexpected)
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
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
        return _IncompatibleKeys(missing, unexpected)

    # --- hooks ---

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
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook: Hook, with_module: bool = False) -> RemovableHandle:
        return add_hook(self._load_state_dict_pre_hooks, _OfModule(hook, self) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after :meth:`load_state_dict`; it may edit the lists."""
        return add_hook(self._load_state_dict_post_hooks, hook)


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
