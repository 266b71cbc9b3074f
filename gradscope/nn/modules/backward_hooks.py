"""Full backward hooks of modules: nodes at a module's inputs and outputs that see the gradients pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...autograd import Function
from ...runtime import events, state
from ...runtime.graph.hooks import HookTable
from ...runtime.tensor.tensor import Tensor
from ...runtime.user_warnings import warn

__all__ = ["BackwardHook", "BackwardHookFunction", "hook_output_node"]

_FIRST = -1  # the number of the hook of a new node that nobody removes; a handle, with one of its own, takes longer


class BackwardHookFunction(Function):
    """The identity, on several tensors at once."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        """Return the arguments."""
        constant = [a for a in args if not a.requires_grad]
        if constant:
            ctx.mark_non_differentiable(*constant)
        return args

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        """Return the gradients."""
        return args


class BackwardHook:
    """Calls a module's full backward hooks when the gradients of its inputs and outputs are there.

    Parameters
    ----------
    user_hooks, user_pre_hooks : list of callable
        ``hook(module, grad_input, grad_output)`` and ``hook(module, grad_output)``.
    """

    def __init__(
        self, module: Any, user_hooks: list[Callable[..., Any]], user_pre_hooks: list[Callable[..., Any]]
    ) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.input_positions: list[int] | None = None
        self.output_positions: list[int] = []
        self.inputs = self.outputs = 0

    @property
    def is_of_user(self) -> bool:
        """Whether a user's hooks are among those it calls, and not only the one that tells listeners."""
        return bool(self.user_pre_hooks) or any(hook is not event_hook for hook in self.user_hooks)

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments with their tensors passed through the identity that sees their gradients."""

        def fire(grad_input: tuple[Any, ...], _: Any) -> Any:
            if self.grad_outputs is None:
                # The outputs were not part of this backward.
                return None
            full = self._spread(grad_input, self.input_positions, self.inputs)
            replaced = self._call_hooks(full)
            self.grad_outputs = None
            return None if replaced is full else tuple(replaced[i] for i in self.input_positions or ())

        result, self.input_positions, node = self._wrap(args)
        self.inputs = len(args)
        if node is not None:
            node._register_hook_dict(HookTable({_FIRST: fire}))
        return result

    def setup_output_hook(self, output: Any) -> Any:
        """Return the output with its tensors passed through the identity that sees their gradients."""

        def fire(_: Any, grad_output: tuple[Any, ...]) -> Any:
            full = given = self._spread(grad_output, self.output_positions, self.outputs)
            for hook in self.user_pre_hooks:
                replaced = hook(self.module, full)
                if replaced is not None:
                    full = _checked(replaced, len(full), hook, "pre hook returned an invalid number of grad_output")
            if state.special and events.wanted(events.ModuleBackwardPre):
                events.emit(events.ModuleBackwardPre(self.module, full))
            self.grad_outputs = full
            if self.input_positions is None or not self.input_positions:
                # No input requires grad: the hooks are called here, without gradients of the inputs.
                if self.is_of_user:
                    warn(
                        "Full backward hook is firing when gradients are computed with respect to module outputs "
                        "since no inputs require gradients. See "
                        "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
                        "#torch.nn.Module.register_full_backward_hook for more details.",
                    )
                self._call_hooks((None,) * max(self.inputs, 1), may_replace=False)
                self.grad_outputs = None
            return None if full is given else tuple(full[i] for i in self.output_positions)

        is_tuple = isinstance(output, tuple)
        outputs = output if is_tuple else (output,)
        result, self.output_positions, node = self._wrap(outputs)
        self.outputs = len(outputs)
        if node is not None:
            node._register_hook_dict(HookTable({_FIRST: fire}))
        return result if is_tuple else result[0]

    def _call_hooks(self, grad_input: tuple[Any, ...], *, may_replace: bool = True) -> tuple[Any, ...]:
        for hook in self.user_hooks:
            replaced = hook(self.module, grad_input, self.grad_outputs)
            if replaced is None:
                continue
            if not may_replace:
                if isinstance(replaced, tuple) and all(grad is None for grad in replaced):
                    continue
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients.\nThere is nowhere for the returned gradients to go."
                )
            grad_input = _checked(replaced, len(grad_input), hook, "hook returned an invalid number of grad_input")
        return grad_input

    def _spread(self, grads: tuple[Any, ...], positions: list[int] | None, count: int) -> tuple[Any, ...]:
        if len(grads) == count:
            return tuple(grads)
        full: list[Any] = [None] * count
        for position, grad in zip(positions or (), grads, strict=True):
            full[position] = grad
        return tuple(full)

    def _wrap(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int], Any]:
        if type(args) is tuple and len(args) == 1 and type(args[0]) is Tensor:  # what most modules are given and return
            positions, tensors = [0], args
        else:
            positions = [position for position, arg in enumerate(args) if isinstance(arg, Tensor)]
            tensors = tuple([args[position] for position in positions])
        if True not in [tensor.requires_grad for tensor in tensors] or not state.local.grad_enabled:
            return args, [], None
        wrapped = BackwardHookFunction.apply(*tensors)
        node = None
        for tensor in wrapped:
            node = node or tensor.grad_fn
        if node is None:
            raise RuntimeError("Error while setting up the backward hooks: the identity recorded no node.")
        if tensors is args:
            return wrapped, positions, node
        result = list(args)
        for position, tensor in zip(positions, wrapped, strict=True):
            result[position] = tensor
        # A named tuple takes its fields one by one.
        return tuple(result) if type(args) is tuple else type(args)(*result), positions, node


class _EventHook:
    """Announces a module's backward to the listeners."""

    def __call__(self, module: Any, grad_input: Any, grad_output: Any) -> None:
        if state.special and events.wanted(events.ModuleBackward):
            events.emit(events.ModuleBackward(module, grad_input, grad_output))


event_hook = _EventHook()


def _checked(replaced: Any, count: int, hook: Callable[..., Any], wrong: str) -> tuple[Any, ...]:
    values = tuple(replaced) if isinstance(replaced, (tuple, list)) else (replaced,)
    if len(values) != count:
        raise RuntimeError(
            f"Backward {wrong}, got {len(values)}, but expected {count}\n"
            f"It is {getattr(hook, '__name__', hook)!s}; return one gradient (or None) for each."
        )
    return values


def first_tensor(value: Any) -> Tensor | None:
    """Return the first tensor in nested tuples, lists and dicts."""
    while not isinstance(value, Tensor):
        if isinstance(value, dict):
            value = next((v for v in value.values() if isinstance(v, Tensor)), None)
        elif isinstance(value, (tuple, list)) and value:
            value = value[0]
        else:
            return None
    return value


def hook_output_node(module: Any, hooks: Iterable[Callable[..., Any]], output: Any) -> None:
    """Register the non-full backward hooks of `module` on the node of its output."""
    tensor = first_tensor(output)
    node = None if tensor is None else tensor.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(_bound(module, hook))


def _bound(module: Any, hook: Callable[..., Any]) -> Callable[..., Any]:
    def call(grad_input: tuple[Any, ...], grad_output: tuple[Any, ...]) -> Any:
        return hook(module, grad_input, grad_output)

    call.__name__ = getattr(hook, "__name__", type(hook).__name__)
    return call
