"""Gradients, and products with Jacobians from the left and from the right."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from ..autograd.forward_ad import dual_level, make_dual, unpack_dual
from ..runtime import state
from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.engine.backward import grad as gradients
from ..runtime.modes import enable_grad
from ..runtime.tensor import tangents
from ..runtime.tensor.tensor import Tensor
from .pytrees import described, filled, leaves, mapped, same_form

__all__ = ["grad", "grad_and_value", "jvp", "linearize", "vjp"]

Function = Callable[..., Any]
ArgNums = int | tuple[int, ...]


# --- a level: points that results are differentiated by, and what else they depend on ---------------------------------


class Level:
    """The tensors that a function is differentiated by: aliases of what it was called with.

    Results keep the history that leads to anything else that requires grad (an outer level, the caller's leaves), and
    lose the one that leads to these alone.
    """

    def __init__(self) -> None:
        self.recording = bool(state.local.grad_enabled)
        self.points: list[Tensor] = []
        self._own: set[int] = set()

    def entered(self, tree: Any) -> Any:
        """Return the tree with aliases, that require grad, for its tensors."""
        return mapped(self._alias, tree)

    def _alias(self, value: Any) -> Tensor:
        if not isinstance(value, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}")
        follow = self.recording or (tangents.active() and tangents.tangent_of(value) is not None)
        point = value.view_as(value) if follow else value.detach()
        if not point.requires_grad:
            self._own.add(id(point.requires_grad_()))
        self.points.append(point)
        return point

    def depends_elsewhere(self, tensors: Iterable[Tensor]) -> bool:
        """Whether results have a history that leads to more than the points."""
        rest = [tensor for tensor in tensors if tensor.requires_grad]
        if any(tensor.grad_fn is None and id(tensor) not in self._own for tensor in rest):
            return True
        nodes: list[Any] = [tensor.grad_fn for tensor in rest if tensor.grad_fn is not None]
        seen = set()
        while nodes:
            node = nodes.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            variable = getattr(node, "variable", None)
            if variable is not None and id(variable) not in self._own:
                return True
            nodes += [function for function, _ in node.next_functions]
        return False

    def left(self, tree: Any, keep: bool) -> Any:
        """Return the tree as the caller gets it: with its history, or without."""
        if keep and self.recording:
            return tree
        return mapped(lambda leaf: _without_history(leaf) if isinstance(leaf, Tensor) else leaf, tree)


def _without_history(tensor: Tensor) -> Tensor:
    """Return a tensor detached, but with its tangent."""
    if not tensor.requires_grad:
        return tensor
    found = tensor.detach()
    tangent = tangents.tangent_of(tensor) if tangents.active() else None
    if tangent is not None:
        tangents.attach(found, tangent.detach())
    return found


def pulled(outputs: list[Tensor], points: list[Tensor], cotangents: list[Tensor], keep: bool) -> list[Tensor]:
    """Return the product of cotangents with the Jacobian, zeros by the points that nothing depends on."""
    pairs = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if o.requires_grad]
    if not pairs:
        return [F.zeros_like(point) for point in points]
    with enable_grad():
        found = gradients(
            [o for o, _ in pairs],
            points,
            [c for _, c in pairs],
            retain_graph=True,
            create_graph=keep,
            allow_unused=True,
        )
    return [F.zeros_like(p) if g is None else g for g, p in zip(found, points, strict=True)]


def chosen(argnums: ArgNums, args: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the positions to differentiate by, counted from the front."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(numbers, tuple):
        raise RuntimeError(f"argnum type should be int or tuple of ints, got: {type(argnums)}")
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise RuntimeError(f"Got argnum={number}, but only {len(args)} positional inputs")
    found = tuple(number % len(args) for number in numbers)
    if len(set(found)) < len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return found


def replaced(args: tuple[Any, ...], numbers: tuple[int, ...], values: Iterable[Any]) -> tuple[Any, ...]:
    """Return arguments with others at some positions."""
    found = list(args)
    for number, value in zip(numbers, values, strict=True):
        found[number] = value
    return tuple(found)


def split_aux(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """Return what is differentiated, and what is handed on."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return result


def tensors_of(name: str, tree: Any) -> list[Tensor]:
    """Return the leaves of a function's output, which are tensors."""
    found = list(leaves(tree))
    for leaf in found:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{name}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}"
            )
    return found


# --- gradients --------------------------------------------------------------------------------------------------------


def grad_and_value(func: Function, argnums: ArgNums = 0, has_aux: bool = False) -> Function:
    """Return the function that returns the gradient of `func`, and its value.

    Parameters
    ----------
    func : callable
        Returns one tensor without dimensions, or a pair of it and anything else, if `has_aux`.
    argnums : int or tuple of int
        The positions of the arguments to differentiate by.

    Returns
    -------
    callable
        Returns ``(gradient, value)`` or ``(gradient, (value, aux))``. The gradient has the form of the argument, and
        is a tuple if `argnums` is.

    See Also
    --------
    grad

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.func.grad_and_value(lambda x: (x * x).sum())(gs.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        level = Level()
        numbers = chosen(argnums, args)
        given = tuple(args[number] for number in numbers)
        with enable_grad():
            inside = level.entered(given)
            result = func(*replaced(args, numbers, inside), **kwargs)
            value, aux = split_aux("grad_and_value(f)(*args)", result, has_aux)
            _check_scalar(value)
            keep = level.depends_elsewhere([value])
            found = pulled([value], level.points, [F.ones_like(value)], keep)
        slopes = level.left(filled(given, found), keep)
        slopes = slopes[0] if isinstance(argnums, int) else slopes
        value = level.left(value, keep)
        if not has_aux:
            return slopes, value
        handed_on = [leaf for leaf in leaves(aux) if isinstance(leaf, Tensor)]
        return slopes, (value, level.left(aux, level.depends_elsewhere(handed_on)))

    return wrapper


def _check_scalar(value: Any) -> None:
    if not isinstance(value, Tensor):
        raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(value)}")
    if value.dim() != 0:
        raise RuntimeError(
            f"grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with {value.dim()} "
            "dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )


def grad(func: Function, argnums: ArgNums = 0, has_aux: bool = False) -> Function:
    """Return the function that returns the gradient of `func`, or the pair of it and what else `func` returned.

    The parameters are those of :func:`grad_and_value`.

    See Also
    --------
    grad_and_value, vjp, autograd.grad

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.func.grad(lambda x, y: x * y, argnums=(0, 1))(gs.tensor(2.0), gs.tensor(3.0))
    (tensor(3.), tensor(2.))
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        slopes, value = both(*args, **kwargs)
        return (slopes, value[1]) if has_aux else slopes

    return wrapper


# --- products ---------------------------------------------------------------------------------------------------------


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return ``func(*primals)`` and the function that multiplies a vector by its Jacobian.

    Parameters
    ----------
    *primals
        The point: tensors, or trees of them.
    has_aux : bool
        Whether `func` returns a pair of its output and anything else.

    Returns
    -------
    output
        What `func` returned at `primals`; of a pair, the first.
    vjp_fn : callable
        Takes tensors of the form of the output, returns a tuple of tensors of the form of `primals`.
    aux
        If `has_aux`.

    See Also
    --------
    jvp, grad

    Examples
    --------
    >>> import gradscope as gs
    >>> output, vjp_fn = gs.func.vjp(lambda x: x * x, gs.tensor([1.0, 2.0]))
    >>> vjp_fn(gs.ones(2))
    (tensor([2., 4.]),)
    """
    level = Level()
    with enable_grad():
        result = func(*level.entered(primals))
        output, aux = split_aux("vjp(f, *primals)", result, has_aux)
        inside = tensors_of("vjp(f, *primals)", output)
        keep = level.depends_elsewhere(inside)

    def vjp_fn(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        if not same_form(given, output):
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {described(given)}, primal output: {described(output)}"
            )
        vectors = list(leaves(given))
        for number, (vector, tensor) in enumerate(zip(vectors, inside, strict=True)):
            if vector.shape != tensor.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{number}] has a shape of {vector.shape} and output[{number}] has "
                    f"a shape of {tensor.shape}."
                )
        linked = keep or any(vector.requires_grad for vector in vectors)
        wanted = linked and (bool(state.local.grad_enabled) if create_graph is None else create_graph)
        return level.left(filled(primals, pulled(inside, level.points, vectors, wanted)), wanted)

    value = level.left(output, keep)
    if not has_aux:
        return value, vjp_fn
    handed_on = [leaf for leaf in leaves(aux) if isinstance(leaf, Tensor)]
    return value, vjp_fn, level.left(aux, level.depends_elsewhere(handed_on))


def jvp(
    func: Function, primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return ``func(*primals)`` and the product of its Jacobian with a vector, in one forward pass.

    Parameters
    ----------
    primals, tangents : tuple
        The point and the vector: tensors, or trees of them, of one form.
    strict : bool
        Raise where an output does not depend on the point, instead of returning zeros.
    has_aux : bool
        Whether `func` returns a pair of its output and anything else.

    Returns
    -------
    output, jvp
        Of one form.
    aux
        If `has_aux`.

    See Also
    --------
    linearize, vjp, autograd.forward_ad.make_dual

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.func.jvp(lambda x: x * x, (gs.tensor([1.0, 2.0]),), (gs.tensor([1.0, 0.0]),))
    (tensor([1., 4.]), tensor([2., 0.]))
    """
    name = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{name}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).\nGive (primals,)."
        )
    if not same_form(primals, tangents):
        raise RuntimeError(
            f"{name}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            "tuple of 3 tensors, tangents also must be. Got primals with structure "
            f"{described(primals)} and tangents with structure {described(tangents)}"
        )
    product = _within if _level_is_open() else _forward
    output, vectors, aux = product(func, primals, list(leaves(tangents)), has_aux)
    if strict and any(vector is None for vector in vectors):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
            "with strict=True."
        )
    zeros = (F.zeros_like(leaf) for leaf in leaves(output))
    pushed = filled(output, [zero if v is None else v for v, zero in zip(vectors, zeros, strict=True)])
    return (output, pushed, aux) if has_aux else (output, pushed)


def _level_is_open() -> bool:
    return tangents.level is not None


Pushed = tuple[Any, list[Tensor | None], Any]


def _forward(func: Function, primals: Any, vectors: list[Tensor], has_aux: bool) -> Pushed:
    """Return output, its tangents and the rest, by forward mode."""
    name = "jvp(f, primals, tangents)"
    with dual_level():
        duals = [make_dual(p, t) for p, t in zip(leaves(primals), vectors, strict=True)]
        output, aux = split_aux(name, func(*filled(primals, duals)), has_aux)
        pairs = [unpack_dual(tensor) for tensor in tensors_of(name, output)]
        aux = mapped(lambda leaf: unpack_dual(leaf).primal if isinstance(leaf, Tensor) else leaf, aux)
    return filled(output, [pair.primal for pair in pairs]), [pair.tangent for pair in pairs], aux


def _within(func: Function, primals: Any, vectors: list[Tensor], has_aux: bool) -> Pushed:
    """Return the same inside another forward pass, whose level is taken.

    A product from the left is linear in its vector, and its derivative by that is the product from the right.
    """
    name = "jvp(f, primals, tangents)"
    level = Level()
    with enable_grad():
        output, aux = split_aux(name, func(*level.entered(primals)), has_aux)
        inside = tensors_of(name, output)
        seeds = [F.zeros_like(tensor).requires_grad_() for tensor in inside]
        found = pulled(inside, level.points, seeds, keep=True)
        level._own |= {id(seed) for seed in seeds}
        keep = level.depends_elsewhere([*inside, *vectors])
        linear = [(f, v) for f, v in zip(found, vectors, strict=True) if f.requires_grad]
        pushed: list[Tensor | None] = [None] * len(seeds)
        if linear:
            pushed = list(
                gradients(
                    [f for f, _ in linear],
                    seeds,
                    [v for _, v in linear],
                    create_graph=True,
                    allow_unused=True,
                )
            )
    return level.left(output, keep), [p if p is None else level.left(p, keep) for p in pushed], aux


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """Return ``func(*primals)`` and the function that multiplies its Jacobian there by a vector.

    Each product is a forward pass of its own.

    See Also
    --------
    jvp

    Examples
    --------
    >>> import gradscope as gs
    >>> output, jvp_fn = gs.func.linearize(lambda x: x * x, gs.tensor([1.0, 2.0]))
    >>> jvp_fn(gs.tensor([1.0, 0.0]))
    tensor([2., 0.])
    """

    def jvp_fn(*tangents: Any) -> Any:
        return jvp(func, primals, tangents)[1]

    return func(*primals), jvp_fn
