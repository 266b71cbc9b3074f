"""Points, vectors and strict mode: the checks that :mod:`gradscope.autograd.functional` makes of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.engine.backward import grad
from ..runtime.memory import device
from ..runtime.tensor.tensor import Tensor

Function = Callable[..., Any]


def as_tensors(value: Any, what: str, function: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Return whether `value` is a tuple, and it, or the tensor it is, as a tuple."""
    many = isinstance(value, tuple)
    values = value if many else (value,)
    for index, item in enumerate(values):
        if not isinstance(item, Tensor):
            where = f"value at index {index}" if many else f"given {what}"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the {where} has "
                f"type {type(item)}."
            )
    return many, values


def prepared(tensors: Sequence[Tensor], create_graph: bool, *, need_graph: bool) -> tuple[Tensor, ...]:
    """Return other tensors of the same values, so that those the function captured are not taken for its arguments."""
    return tuple(
        t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_(need_graph) for t in tensors
    )


def point_and_direction(
    inputs: Any, v: Any, function: str, create_graph: bool
) -> tuple[bool, tuple[Tensor, ...], tuple[Tensor | None, ...]]:
    """Return whether there are many inputs, the point, and the vector of its shape."""
    many, points = as_tensors(inputs, "inputs", function)
    points = prepared(points, create_graph, need_graph=True)
    return (
        many,
        points,
        direction(v, function, points, many, create_graph, "the input to the user-provided function is"),
    )


def direction(
    v: Any, function: str, like: Sequence[Tensor], many: bool, create_graph: bool, single: str
) -> tuple[Tensor | None, ...]:
    """Return the vector `v`, which is to have the shapes of `like`; ``(None,)``, a single 1, if it is not given."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if {single} a single Tensor with a single element.\n"
                f"Give v, of the shape(s) {', '.join(str(list(t.shape)) for t in like)}."
            )
        return (F.ones_like(like[0]),)
    _, vector = as_tensors(v, "v", function)
    if len(vector) != len(like):
        if many:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vector)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for index, (item, other) in enumerate(zip(vector, like, strict=True)):
        if item.shape != other.shape:
            entry = f"Entry {index} in " if many else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {other.shape} but got {item.shape}.")
    return prepared(vector, create_graph, need_graph=False)


def zeros_like(tensor: Tensor) -> Tensor:
    """Return zeros of the shape and dtype of `tensor`, contiguous."""
    array = tensor._array
    return Tensor._wrap(device.array_module(array).zeros(array.shape, dtype=array.dtype))


def zero_seeds(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return zeros that require grad: a backward is linear in its seeds, whatever they are."""
    return tuple(zeros_like(t).requires_grad_() for t in tensors)


def single_output(output: Any, function: str, strict: bool) -> Tensor:
    """Return what the user's function returned, if it is one tensor of one element."""
    many, outputs = as_tensors(output, "outputs of the user-provided function", function)
    check_strict(outputs, OUTPUTS, strict)
    if many:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {function} should contain a single element\n"
            f"Its shape is {list(outputs[0].shape)}."
        )
    return outputs[0]


def gradient_of(
    func: Function, points: tuple[Tensor, ...], function: str, strict: bool
) -> tuple[tuple[Tensor], tuple[Tensor | None, ...]]:
    """Return the single output of `func` and its gradients, recorded."""
    output = single_output(func(*points), function, strict)
    gradients = partial_grad((output,), points, (None,), create_graph=True)
    check_strict(gradients, JACOBIAN, strict)
    return (output,), gradients


def partial_grad(
    outputs: Sequence[Tensor | None],
    points: Sequence[Tensor],
    vector: Sequence[Tensor | None],
    create_graph: bool,
    retain_graph: bool | None = None,
) -> tuple[Tensor | None, ...]:
    """Return ``grad`` of the outputs that have a gradient, with None for inputs they do not depend on."""
    pairs = [(o, v) for o, v in zip(outputs, vector, strict=True) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(points)
    ends, seeds = zip(*pairs, strict=True)
    return grad(ends, points, seeds, retain_graph, create_graph, allow_unused=True)


def returned(values: Sequence[Tensor], many: bool, create_graph: bool) -> Any:
    """Return results as the user gets them: without history unless it is wanted, one of them alone unless many."""
    kept = tuple(values) if create_graph else tuple(value.detach() for value in values)
    return kept if many else kept[0]


# --- strict mode ------------------------------------------------------------------------------------------------------

OUTPUTS = (
    "Output {i} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode."
)
GRAD_INPUTS = (
    "The gradient with respect to input {i} is independent of the inputs of the user-provided function. This is not "
    "allowed in strict mode."
)
JACOBIAN = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {i} is "
    "independent of the input. This is not allowed in strict mode. You should ensure that your function is twice "
    "differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for "
    "example)."
)
BACK = "The output of the user-provided function is independent of input {i}. This is not allowed in strict mode."
BACK_TRICK = (
    "The gradient with respect to the input is independent of entry {i} in the grad_outputs when using the double "
    "backward trick to compute forward mode gradients. This is not allowed in strict mode."
)
DOUBLE_BACK = (
    "The jacobian of the user-provided function is independent of input {i}. This is not allowed in strict mode."
)
DOUBLE_BACK_TRICK = (
    "The hessian of the user-provided function is independent of entry {i} in the grad_jacobian. This is not allowed "
    "in strict mode as it prevents from using the double backward trick to replace forward mode AD."
)
BACK_GRAPH = (
    "The jacobian of the user-provided function is independent of input {i}. This is not allowed in strict mode when "
    "create_graph=True."
)
DOUBLE_BACK_GRAPH = (
    "The hessian of the user-provided function is independent of input {i}. This is not allowed in strict mode when "
    "create_graph=True."
)


def row_messages(output: int) -> tuple[str, str]:
    """Return what strict mode says of an output without derivative, and of a Jacobian without one."""
    return (
        f"Output {output} of the user-provided function is independent of input {{i}}. This is not allowed in strict "
        "mode.",
        BACK_GRAPH,
    )


def check_strict(tensors: Sequence[Tensor | None], message: str, strict: bool) -> None:
    """In strict mode, raise for a tensor that is not a function of the inputs."""
    for index, tensor in enumerate(tensors if strict else ()):
        if tensor is None:
            raise RuntimeError(BACK.format(i=index))
        if not tensor.requires_grad:
            raise RuntimeError(message.format(i=index))


def zero_filled(
    grads: Sequence[Tensor | None],
    like: Sequence[Tensor],
    strict: bool,
    create_graph: bool,
    missing: str,
    unrecorded: str,
) -> tuple[Tensor, ...]:
    """Return zeros for the gradients that are None; in strict mode raise for them, and for constant ones."""
    filled = []
    for index, (found, other) in enumerate(zip(grads, like, strict=True)):
        if found is None:
            if strict:
                raise RuntimeError(missing.format(i=index))
            found = zeros_like(other)
        elif strict and create_graph and not found.requires_grad:
            raise RuntimeError(unrecorded.format(i=index))
        filled.append(found)
    return tuple(filled)
