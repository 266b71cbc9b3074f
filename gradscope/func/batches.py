"""A function of one example as a function of many: one call for each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..nn.modules.module import Module
from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.ops.random.random import default_generator
from ..runtime.tensor.tensor import Tensor
from .pytrees import described, filled, is_leaf, leaves, same_form

__all__ = ["stack_module_state", "vmap"]


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return the function that applies `func` to every part of its arguments and stacks what it returns.

    `func` runs once for each part: the results are PyTorch's, the speed is a loop's, and `func` may branch on values.

    Parameters
    ----------
    func : callable
        Takes and returns tensors, or trees of them. Keyword arguments are handed on whole.
    in_dims : int, None or tree
        The dimension along which each argument is taken apart; None hands it on whole.
    out_dims : int, None or tree
        Where the results are stacked; None returns what does not depend on the part.
    randomness : {"error", "different", "same"}
        Whether `func` may draw random numbers (with the default generator of the CPU), and whether all calls draw the
        same.
    chunk_size : int, optional
        Accepted for PyTorch's sake: parts come one at a time.

    Raises
    ------
    ValueError
        If `in_dims` or `out_dims` does not fit, or there is nothing to take apart.
    RuntimeError
        If `func` draws random numbers and `randomness` is "error"; if there are no parts.

    See Also
    --------
    func.stack_module_state, func.jacrev

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.vmap(gs.dot)(gs.ones(2, 3), gs.ones(2, 3))
    tensor([3., 3.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    name = getattr(func, "__name__", repr(func))

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        values, dims = list(leaves(args)), _dims_of(name, in_dims, args)
        count = _count(name, in_dims, values, dims)
        results = []
        draws = _Draws(randomness)
        for i in range(count):
            taken = [v if d is None else v.select(d, i) for v, d in zip(values, dims, strict=True)]
            with draws.watched():
                results.append(func(*filled(args, taken), **kwargs))
        draws.check()
        return _stacked(name, results, out_dims)

    return wrapper


def _dims_of(name: str, in_dims: Any, args: tuple[Any, ...]) -> list[int | None]:
    """Return the dimension for each leaf of the arguments."""
    where = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{where}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    found = _spread(in_dims, args)
    if found is None:
        raise ValueError(
            f"{where}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{described(in_dims)} but inputs has structure {described(args)}."
        )
    checked = []
    for dim, value in zip(found, leaves(args), strict=True):
        checked.append(dim if dim is None else _checked_dim(where, dim, value))
    return checked


def _checked_dim(where: str, dim: Any, value: Any) -> int:
    if not isinstance(dim, int):
        raise ValueError(
            f"{where}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
        )
    if not isinstance(value, Tensor):
        raise ValueError(
            f"{where}: Got in_dim={dim} for an input but the input is of type {type(value)}. We cannot vmap over "
            "non-Tensor arguments, please use None as the respective in_dim"
        )
    rank = value.dim()
    if not -rank <= dim < rank:
        raise ValueError(
            f"{where}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {rank} so "
            f"expected in_dim to satisfy -{rank} <= in_dim < {rank}."
        )
    return dim


def _spread(dims: Any, tree: Any) -> list[Any] | None:
    """Return an entry of `dims` for each leaf of a tree; None if their forms do not fit."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(list(leaves(tree)))
    if is_leaf(dims) or is_leaf(tree) or type(dims) is not type(tree) or len(dims) != len(tree):
        return [dims] if is_leaf(dims) and is_leaf(tree) else None
    if isinstance(tree, dict):
        pairs = [(dims.get(key), value) for key, value in tree.items()]
    else:
        pairs = list(zip(dims, tree, strict=True))
    parts = [_spread(d, t) for d, t in pairs]
    return None if any(part is None for part in parts) else [dim for part in parts for dim in part or ()]


def _count(name: str, in_dims: Any, values: list[Any], dims: list[int | None]) -> int:
    """Return the number of parts."""
    sizes = [int(v.shape[d]) for v, d in zip(values, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): got no tensor to take apart\nGive a dimension to one."
        )
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{list(dict.fromkeys(sizes))} for the mapped dimension"
        )
    if sizes[0] == 0:
        raise RuntimeError(
            "vmap: there are no parts, and so no call that would tell the form of the result\n"
            "Call it on one part at least."
        )
    return sizes[0]


class _Draws:
    """The random numbers that the calls may draw from the default generator."""

    def __init__(self, randomness: str) -> None:
        self.randomness = randomness
        self.start = default_generator.mark()
        self.calls = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Context manager around one call."""
        if self.randomness == "same" and self.calls:
            default_generator.go_to(self.start)
        yield
        self.calls += 1
        if self.calls == 1:
            self.check()

    def check(self) -> None:
        """Raise where calls have drawn that may not: asked after the first, before the others run, and after all."""
        if self.randomness == "error" and _moved(self.start):
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
                "'different' randomness flags on vmap or perform the randomness operation out of vmap"
            )


def _moved(mark: Any) -> bool:
    return isinstance(mark, Tensor) and mark.tolist() != default_generator.get_state().tolist()


def _stacked(name: str, results: list[Any], out_dims: Any) -> Any:
    """Return the results of all calls as one."""
    form = results[0]
    for result in results:
        if not same_form(result, form):
            raise ValueError(
                f"vmap({name}, ...): the calls return {described(form)} and {described(result)}\n"
                "All of them have to return one form."
            )
    dims = _spread(out_dims, form)
    if dims is None and isinstance(out_dims, tuple) and len(out_dims) == 1 and is_leaf(form):
        dims = [out_dims[0]]
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {described(out_dims)} but outputs has structure {described(form)}."
        )
    columns = zip(*(leaves(result) for result in results), strict=True)
    return filled(form, [_joined(name, column, dim) for column, dim in zip(columns, dims, strict=True)])


def _joined(name: str, column: Sequence[Any], dim: int | None) -> Any:
    if dim is None:
        return column[0]
    if not isinstance(column[0], Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(column[0])}. Did you mean to set "
            "out_dims= to None for output?"
        )
    return F.stack(list(column), dim)


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and the buffers of modules of one kind, stacked, for :func:`vmap` over the modules.

    Raises
    ------
    RuntimeError
        If there are none, or they differ in kind or in training mode.

    See Also
    --------
    functional_call, vmap

    Examples
    --------
    >>> import gradscope as gs
    >>> params, buffers = gs.func.stack_module_state([gs.nn.Linear(2, 1) for _ in range(3)])
    >>> params["weight"].shape
    gradscope.Size([3, 1, 2])
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    params, buffers = [dict(m.named_parameters()) for m in models], [dict(m.named_buffers()) for m in models]
    return _stacked_tables(params), _stacked_tables(buffers)


def _stacked_tables(tables: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    return {name: _leaf([table[name] for table in tables]) for name in tables[0]}


def _leaf(tensors: list[Tensor]) -> Tensor:
    """Return tensors stacked: a leaf that requires grad if they do."""
    if len({tensor.requires_grad for tensor in tensors}) > 1:
        raise RuntimeError("Expected each parameter in the models to have the same requires_grad across all models.")
    return F.stack([tensor.detach() for tensor in tensors]).requires_grad_(tensors[0].requires_grad)
