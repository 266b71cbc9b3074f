"""Random numbers: generators, one default for each device, and what draws from them.

The numbers come from NumPy's generators on the CPU and CuPy's on a GPU: the same seed gives the same numbers on every
run, but not PyTorch's.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy

from ... import state
from ...kernels.casts import cast
from ...memory import device as devices
from ...memory import dtype as dtypes
from ...memory.dtype import scalar_type
from ...memory.memory_format import check_memory
from ...tensor.creation import array_like, finish, numpy_dtype, shape_of
from ...tensor.overrides import overridable
from ...tensor.tensor import Tensor
from ..declaration.annotations import (
    Array,
    Device,
    DType,
    Formula,
    Layout,
    MemoryFormat,
    Namespace,
    Number,
    Operand,
    Out,
    RandomSource,
    Shape,
    Sizes,
)
from ..declaration.registry import METHODS, OPERATORS, operator
from ..execution import general, inplace_and_out

__all__ = [
    "Generator",
    "bernoulli",
    "default_generator",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "multinomial",
    "normal",
    "poisson",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "seed",
    "set_rng_state",
]

# The generator of an array module, numpy.random or cupy.random, and what gives it its bits.
Source: TypeAlias = Any
BitSource: TypeAlias = Any

_STATE_WORDS = 6
_WORD = (1 << 64) - 1


class Generator:
    """A source of random numbers on one device.

    Parameters
    ----------
    device : str or device
        Where the numbers are made and stay.

    See Also
    --------
    manual_seed, random.fork_rng

    Examples
    --------
    >>> import gradscope as gs
    >>> generator = gs.Generator().manual_seed(0)
    >>> gs.rand(2, generator=generator).shape
    gradscope.Size([2])
    """

    def __init__(self, device: Device = "cpu") -> None:
        self.device = devices.device(device)
        self._backend = devices.loaded(self.device.type)
        self._seed: int | None = None
        self._source: Source = None

    @property
    def source(self) -> Source:
        """The array module's own generator."""
        if self._source is None:
            # An unseeded generator takes its seed from the system, when it is first used.
            self.manual_seed(_system_seed() if self._seed is None else self._seed)
        return self._source

    def draw(self, distribution: str, *args: Any, **kwargs: Any) -> Array:
        """Return a bare array of numbers of a distribution, by the name and arguments of the module's generator."""
        self._backend.need_current(self.device.index)
        return self.module.asarray(getattr(self.source, distribution)(*args, **kwargs))

    @property
    def module(self) -> Namespace:
        """The array module whose arrays come out."""
        return self._backend.module

    def manual_seed(self, seed: int) -> Generator:
        """Start again from `seed`; return the generator.

        Raises
        ------
        ValueError
            If the seed does not fit 64 bits.
        """
        seed = int(seed)
        if not -(1 << 63) <= seed <= _WORD:
            raise ValueError(f"Overflow when unpacking long long\nThe seed {seed} does not fit 64 bits.")
        self._seed = seed & _WORD
        with self._backend.on(self.device.index):
            self._source = self.module.random.default_rng(self._seed)
        return self

    def seed(self) -> int:
        """Start again from a seed the system chooses; return it."""
        self.manual_seed(_system_seed())
        return self.initial_seed()

    def initial_seed(self) -> int:
        """Return the seed the generator started from."""
        self.source  # noqa: B018 - seeds it
        assert self._seed is not None
        return self._seed

    def get_state(self) -> Tensor:
        """Return the state as a tensor of bytes, for :meth:`set_state`."""
        state = self._bits().state
        words = [
            *(part for key in ("state", "inc") for part in _split_word(state["state"][key])),
            state["has_uint32"],
            state["uinteger"],
        ]
        return Tensor._wrap(numpy.array([*words, self.initial_seed()], dtype=numpy.uint64).view(numpy.uint8).copy())

    def set_state(self, new_state: Tensor) -> None:
        """Go back to a state from :meth:`get_state`.

        Raises
        ------
        TypeError
            If it is no tensor of bytes.
        RuntimeError
            If it has another length than a state.
        """
        if not isinstance(new_state, Tensor) or new_state.dtype is not dtypes.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor".replace("torch", "gradscope"))
        if new_state.numel() != 8 * (_STATE_WORDS + 1):
            raise RuntimeError(f"RNG state is wrong size: {new_state.numel()} bytes\nTake it from get_rng_state().")
        words = [int(word) for word in devices.to_host(new_state._array).copy().view(numpy.uint64)]
        state = self._bits().state
        state["state"] = {"state": words[0] | words[1] << 64, "inc": words[2] | words[3] << 64}
        state["has_uint32"], state["uinteger"], self._seed = words[4:]
        self._bits().state = state

    def mark(self) -> Tensor | int:
        """Return what :meth:`replay` and :meth:`go_to` need to draw again what is drawn from now on.

        A generator whose state cannot be read, as CuPy's, goes on from a seed that it draws for that.
        """
        if self._has_state():
            return self.get_state()
        seed = int(self.source.integers(0, _WORD >> 1, size=1)[0])
        self.manual_seed(seed)
        return seed

    def go_to(self, mark: Tensor | int) -> None:
        """Draw from now on what was drawn after :meth:`mark`."""
        if isinstance(mark, int):
            self.manual_seed(mark)
        else:
            self.set_state(mark)

    @contextmanager
    def replay(self, mark: Tensor | int) -> Iterator[None]:
        """Context manager: draw what was drawn after :meth:`mark`; afterwards go on as if nothing had been drawn."""
        before = self._seed, self._source
        try:
            self.manual_seed(0)  # another source: a state is written into it
            self.go_to(mark)
            yield
        finally:
            self._seed, self._source = before

    def _has_state(self) -> bool:
        return isinstance(getattr(self.source.bit_generator, "state", None), dict)

    def _bits(self) -> BitSource:
        if not self._has_state():
            raise RuntimeError(
                f"the state of a generator on {self.device} cannot be read or set\nSeed it with manual_seed() instead."
            )
        return self.source.bit_generator

    def __getstate__(self) -> tuple[str, Tensor]:
        return str(self.device), self.get_state()

    def __setstate__(self, state: tuple[str, Tensor]) -> None:
        self.__init__(state[0])  # type: ignore[misc]
        self.set_state(state[1])

    def __repr__(self) -> str:
        return f"<gradscope.Generator on {self.device}>"


def _system_seed() -> int:
    return int.from_bytes(os.urandom(8), "little") >> 1


def _split_word(value: int) -> tuple[int, int]:
    return value & _WORD, value >> 64


default_generator = Generator()
_defaults: dict[tuple[str, int], Generator] = {("cpu", 0): default_generator}
_common_seed: int | None = None


def generator_for(where: Operand, given: Generator | None = None) -> Generator:
    """Return the generator given, or the default one of a device."""
    place = devices.CPU if where is None else devices.device(where) if not isinstance(where, int) else where
    if not isinstance(place, devices.device):
        place = devices.device("cuda", place)
    if given is not None:
        if given.device != place:
            raise RuntimeError(
                f"Expected a '{place.type}' device type for generator but found '{given.device.type}'\n"
                f"Make one there: gradscope.Generator(device={place.type!r})."
            )
        return given
    key = (place.type, place.index or 0)
    found = _defaults.get(key)
    if found is None:
        found = _defaults[key] = Generator(place)
        if _common_seed is not None:
            found.manual_seed(_common_seed)
    return found


def manual_seed(seed: int) -> Generator:
    """Seed the default generators of all devices; return the CPU's.

    See Also
    --------
    seed, initial_seed, random.fork_rng

    Examples
    --------
    >>> import gradscope as gs
    >>> _ = gs.random.manual_seed(0)
    >>> first = gs.rand(2)
    >>> _ = gs.random.manual_seed(0)
    >>> gs.equal(first, gs.rand(2))
    True
    """
    global _common_seed
    default_generator.manual_seed(seed)
    _common_seed = int(seed)
    for generator in _defaults.values():
        generator.manual_seed(seed)
    return default_generator


def seed() -> int:
    """Seed the default generators from the system; return the seed.

    See Also
    --------
    manual_seed, initial_seed

    Examples
    --------
    >>> import gradscope as gs
    >>> isinstance(gs.random.seed(), int)
    True
    """
    chosen = _system_seed()
    manual_seed(chosen)
    return chosen


def initial_seed() -> int:
    """Return the seed the CPU's default generator started from.

    See Also
    --------
    manual_seed, seed

    Examples
    --------
    >>> import gradscope as gs
    >>> _ = gs.random.manual_seed(7)
    >>> gs.random.initial_seed()
    7
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Return the state of the CPU's default generator as a tensor of bytes.

    See Also
    --------
    set_rng_state, random.fork_rng

    Examples
    --------
    >>> import gradscope as gs
    >>> state = gs.random.get_rng_state()
    >>> first = gs.rand(2)
    >>> gs.random.set_rng_state(state)
    >>> gs.equal(first, gs.rand(2))
    True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Put the CPU's default generator into a state from :func:`get_rng_state`.

    See Also
    --------
    get_rng_state, manual_seed

    Examples
    --------
    >>> import gradscope as gs
    >>> state = gs.random.get_rng_state()
    >>> first = gs.rand(2)
    >>> gs.random.set_rng_state(state)
    >>> gs.equal(first, gs.rand(2))
    True
    """
    default_generator.set_state(new_state)


# --- draws ------------------------------------------------------------------------------------------------------------


def _draw(generator: Generator, distribution: str, shape: Shape, kind: numpy.dtype) -> Array:
    """Return numbers of "random" (uniform in [0, 1)) or "standard_normal", in dtype `kind`."""
    if kind.kind == "c":
        scale = 0.5**0.5 if distribution == "standard_normal" else 1.0
        parts = [generator.draw(distribution, shape) * scale for _ in range(2)]
        return (parts[0] + 1j * parts[1]).astype(kind)
    own = kind if kind.itemsize >= 4 else numpy.dtype(numpy.float32)
    drawn = generator.draw(distribution, shape, dtype=own)
    return drawn if own is kind else cast(drawn, kind)


def _source_of(where: Operand, generator: Generator | None) -> Generator:
    """Return the generator given, or that of the device given, or of the default device."""
    where = devices.wanted(where)
    return generator_for(where if where is not None or generator is None else generator.device, generator)


def _floating(name: str, kind: numpy.dtype) -> numpy.dtype:
    if kind.kind not in dtypes.INEXACT:
        legacy = dtypes.BY_NUMPY[kind].legacy_name.removesuffix("Tensor")
        raise NotImplementedError(f"\"{name}\" not implemented for '{legacy}'\nAsk for a floating dtype.")
    return kind


def _within(kind: numpy.dtype, bounds: Mapping[str, Number]) -> None:
    """Refuse bounds, by what PyTorch calls them, that a dtype cannot hold: draws would wrap around or be NaN."""
    limits = dtypes.iinfo if kind.kind in "iu" else dtypes.finfo
    least, most = (0, 1) if kind.kind == "b" else (limits(dtypes.BY_NUMPY[kind]).min, limits(dtypes.BY_NUMPY[kind]).max)
    for name, bound in bounds.items():
        if not least <= bound <= most:
            raise RuntimeError(
                f"{name} is out of bounds for {scalar_type(kind)}\nIt is {bound}; the dtype holds {least} to {most}."
            )


def _need_range(kind: numpy.dtype, low: int, high: int) -> None:
    """Refuse a range, `high` exclusive, that is empty or that a dtype cannot hold."""
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if kind.kind == "c":
        raise RuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean types\nDraw real numbers first."
        )
    _within(kind, {"from": low, "to - 1": high - 1})


def _need_deviation(std: Operand) -> None:
    """Refuse a standard deviation, a number or an array, that is negative or NaN."""
    if not hasattr(std, "dtype"):
        if not std >= 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std}\nTake its absolute value.")
    elif std.size and not bool((std >= 0).all()):
        raise RuntimeError("normal expects all elements of std >= 0.0\nTake their absolute values.")


def _random(
    name: str,
    distribution: str,
    shape: Shape,
    kind: DType,
    where: Operand,
    generator: RandomSource,
    requires_grad: bool,
    out: Out,
) -> Tensor:
    target = _floating(name, numpy_dtype(kind, out))
    source = _source_of(where, generator)
    return finish(_draw(source, distribution, shape, target), requires_grad, out, name)


def rand(
    *sizes: Sizes,
    size: Sizes = None,
    out: Out = None,
    generator: Generator | None = None,
    dtype: DType = None,
    device: Device = None,
    requires_grad: bool = False,
    layout: Layout = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return numbers drawn uniformly from [0, 1).

    See Also
    --------
    randn, rand_like, randint, manual_seed

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.rand(2, 3).shape
    gradscope.Size([2, 3])
    """
    if layout is not None or pin_memory:
        check_memory("rand", layout, pin_memory)
    shape = shape_of(sizes, "rand", size)
    return _random("uniform_", "random", shape, dtype, device, generator, requires_grad, out)


def randn(
    *sizes: Sizes,
    size: Sizes = None,
    out: Out = None,
    generator: Generator | None = None,
    dtype: DType = None,
    device: Device = None,
    requires_grad: bool = False,
    layout: Layout = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return numbers drawn from the standard normal distribution.

    See Also
    --------
    rand, randn_like, normal

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.randn(2, 3).shape
    gradscope.Size([2, 3])
    """
    if layout is not None or pin_memory:
        check_memory("randn", layout, pin_memory)
    shape = shape_of(sizes, "randn", size)
    return _random("normal_kernel_cpu", "standard_normal", shape, dtype, device, generator, requires_grad, out)


def _filled_like(drawn: Tensor, input: Tensor, requires_grad: bool, memory_format: MemoryFormat) -> Tensor:
    """Return what was drawn in the memory order of `input`, or as `memory_format` says."""
    array = array_like("empty", input, drawn.dtype, drawn.device, memory_format)
    array[...] = drawn._array
    return finish(array, requires_grad)


@overridable
def rand_like(
    input: Tensor,
    *,
    dtype: DType = None,
    device: Device = None,
    requires_grad: bool = False,
    layout: Layout = None,
    pin_memory: bool = False,
    generator: Generator | None = None,
    memory_format: MemoryFormat = None,
) -> Tensor:
    """Return uniform numbers of the shape, dtype, device and memory order of `input`.

    See Also
    --------
    rand, randn_like

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.rand_like(gs.ones(2, 3)).shape
    gradscope.Size([2, 3])
    """
    if layout is not None or pin_memory:
        check_memory("rand_like", layout, pin_memory)
    drawn = rand(*input.shape, generator=generator, dtype=dtype or input.dtype, device=device or input.device)
    return _filled_like(drawn, input, requires_grad, memory_format)


@overridable
def randn_like(
    input: Tensor,
    *,
    dtype: DType = None,
    device: Device = None,
    requires_grad: bool = False,
    layout: Layout = None,
    pin_memory: bool = False,
    generator: Generator | None = None,
    memory_format: MemoryFormat = None,
) -> Tensor:
    """Return normal numbers of the shape, dtype, device and memory order of `input`.

    See Also
    --------
    randn, rand_like

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.randn_like(gs.ones(2, 3)).shape
    gradscope.Size([2, 3])
    """
    if layout is not None or pin_memory:
        check_memory("randn_like", layout, pin_memory)
    drawn = randn(*input.shape, generator=generator, dtype=dtype or input.dtype, device=device or input.device)
    return _filled_like(drawn, input, requires_grad, memory_format)


def randint(
    low: int,
    high: int | None = None,
    size: Sizes = None,
    *,
    out: Out = None,
    generator: Generator | None = None,
    dtype: DType = None,
    device: Device = None,
    requires_grad: bool = False,
    layout: Layout = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return integers drawn uniformly from `low` (0) to `high`, exclusive.

    Raises
    ------
    RuntimeError
        If `high` is not above `low`, or the dtype cannot hold what lies between.

    See Also
    --------
    randint_like, randperm, rand

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.randint(0, 10, (2, 3)).shape
    gradscope.Size([2, 3])
    """
    if layout is not None or pin_memory:
        check_memory("randint", layout, pin_memory)
    if not isinstance(high, int):
        low, high, size = 0, low, high if size is None else size
    kind = dtypes.int64.numpy if dtype is None and out is None else numpy_dtype(dtype, out)
    _need_range(kind, low, high)
    source = _source_of(device, generator)
    drawn = source.draw("integers", low, high, size=shape_of((size,), "randint")).astype(kind)
    return finish(drawn, requires_grad, out, "randint")


@overridable
def randint_like(
    input: Tensor,
    low: int,
    high: int | None = None,
    *,
    dtype: DType = None,
    device: Device = None,
    requires_grad: bool = False,
    layout: Layout = None,
    pin_memory: bool = False,
    generator: Generator | None = None,
    memory_format: MemoryFormat = None,
) -> Tensor:
    """Return integers of the shape, dtype, device and memory order of `input`.

    See Also
    --------
    randint, rand_like

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.randint_like(gs.ones(2, 3), 10).shape
    gradscope.Size([2, 3])
    """
    if layout is not None or pin_memory:
        check_memory("randint_like", layout, pin_memory)
    low, high = (0, low) if high is None else (low, high)
    kind, place = dtype or input.dtype, device or input.device
    drawn = randint(low, high, tuple(input.shape), generator=generator, dtype=kind, device=place)
    return _filled_like(drawn, input, requires_grad, memory_format)


def randperm(
    n: int,
    *,
    out: Out = None,
    generator: Generator | None = None,
    dtype: DType = None,
    device: Device = None,
    requires_grad: bool = False,
    layout: Layout = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return the integers below `n` in random order.

    See Also
    --------
    randint, arange

    Examples
    --------
    >>> import gradscope as gs
    >>> sorted(gs.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    if layout is not None or pin_memory:
        check_memory("randperm", layout, pin_memory)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]\nrandperm() takes n >= 0.")
    source = _source_of(device, generator)
    kind = dtypes.int64.numpy if dtype is None and out is None else numpy_dtype(dtype, out)
    _need_distinct(n, kind)
    order = source.module.argsort(source.draw("random", n))
    return finish(order.astype(kind), requires_grad, out, "randperm")


def _need_distinct(n: int, kind: numpy.dtype) -> None:
    """Refuse a permutation in a dtype that does not tell the integers below `n` apart."""
    if kind.kind in "bc":
        raise NotImplementedError(f"\"randperm\" not implemented for '{scalar_type(kind)}'\nConvert the result.")
    if kind.kind in "iu":
        most = dtypes.iinfo(dtypes.BY_NUMPY[kind]).max + 1
    else:
        most = int(2 / dtypes.finfo(dtypes.BY_NUMPY[kind]).eps) + 1
    if n > most and kind.kind != "V":  # PyTorch lets bfloat16 repeat some
        raise RuntimeError(f"n cannot be greater than {most} for {scalar_type(kind)} type.\nIt is {n}.")


def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return indices drawn with probabilities proportional to the rows of `input`.

    Raises
    ------
    RuntimeError
        If the weights are no probabilities, or too few for a draw without replacement.

    See Also
    --------
    bernoulli, distributions.Categorical

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.multinomial(gs.tensor([0.0, 1.0, 0.0]), 3, replacement=True)
    tensor([1, 1, 1])
    """
    weights = input._array
    xp = devices.array_module(weights)
    if weights.dtype.kind not in dtypes.FLOATING:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {input.dtype}")
    if weights.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > weights.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement\n"
            f"There are {weights.shape[-1]} categories and {num_samples} samples; draw with replacement=True."
        )
    if type(weights) is devices.ndarray:
        _check_probabilities(xp, weights)
    source = generator_for(input.device, generator)
    rows = weights.astype(xp.float64)
    if replacement:
        cumulated = xp.cumsum(rows, axis=-1)
        draws = source.draw("random", (*rows.shape[:-1], num_samples)) * cumulated[..., -1:]
        chosen = xp.sum(cumulated[..., None, :] <= draws[..., None], axis=-1)
        last = (rows > 0) * xp.arange(rows.shape[-1])
        chosen = xp.minimum(chosen, last.max(axis=-1, keepdims=True))
    else:
        # The largest of u ** (1 / weight), see Efraimidis and Spirakis, "Weighted random sampling", 2006.
        keys = xp.log(1 - source.draw("random", rows.shape)) / xp.where(rows > 0, rows, 1)
        keys = xp.where(rows > 0, keys, -xp.inf)
        chosen = xp.argsort(-keys, axis=-1)[..., :num_samples]
    if out is not None:
        if out._dtype != xp.int64:
            raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype}\nGive one of int64.")
        return inplace_and_out.store_out("multinomial", chosen.astype(xp.int64), [input], out)
    return Tensor._wrap(chosen.astype(xp.int64))


def _check_probabilities(xp: Namespace, weights: Array) -> None:
    if not xp.isfinite(weights).all() or (weights < 0).any():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not (weights.sum(axis=-1) > 0).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


# --- operators: what writes into a tensor, and what takes its parameters from one -------------------------------------


def _source(array: Array, generator: Generator | None) -> Generator:
    return generator_for(devices.device_of(array), generator)


def _uniform(xp: Namespace, self: Array, low: float, high: float, generator: RandomSource) -> Array:
    _floating("uniform_", self.dtype)
    _within(self.dtype, {"from": low, "to": high})
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}")
    _within(self.dtype, {"to - from": high - low})
    return _draw(_source(self, generator), "random", self.shape, self.dtype) * (high - low) + low


def _normal(xp: Namespace, self: Array, mean: float, std: float, generator: RandomSource) -> Array:
    _floating("normal_kernel_cpu", self.dtype)
    _need_deviation(std)
    return _draw(_source(self, generator), "standard_normal", self.shape, self.dtype) * std + mean


def _bernoulli_fill(xp: Namespace, self: Array, p: float, generator: RandomSource) -> Array:
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    return (_source(self, generator).draw("random", self.shape) < p).astype(self.dtype)


def _exponential(xp: Namespace, self: Array, lambd: float, generator: RandomSource) -> Array:
    _floating("exponential_", self.dtype)
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    return -xp.log1p(-_draw(_source(self, generator), "random", self.shape, self.dtype)) / lambd


def _most_exact(kind: numpy.dtype) -> int:
    """Return the largest integer of a dtype up to which it has all of them."""
    if kind.kind == "b":
        return 1
    named = dtypes.BY_NUMPY[kind]
    return int(2 / dtypes.finfo(named).eps) if named.is_floating_point else int(dtypes.iinfo(named).max)


def _integers(xp: Namespace, self: Array, low: Number, high: Number, generator: RandomSource) -> Array:
    if high is None and low is not None:
        low, high = 0, low
    if high is None:
        low, high = 0, _most_exact(self.dtype) + 1
    _need_range(self.dtype, low, high)
    return _source(self, generator).draw("integers", low, high, size=self.shape).astype(self.dtype)


# What fills a tensor is differentiable in name: the gradient of what it overwrites is 0.
for _schema, _forward, _doc in (
    ("uniform(Tensor self, float from_=0, float to=1, *, Generator? generator=None)", _uniform,
     "numbers drawn uniformly from [from_, to)"),
    ("normal(Tensor self, float mean=0, float std=1, *, Generator? generator=None)", _normal,
     "normal numbers"),
    ("bernoulli.fill(Tensor self, float p=0.5, *, Generator? generator=None)", _bernoulli_fill,
     "ones with probability `p`, else zeros"),
    ("exponential(Tensor self, float lambd=1, *, Generator? generator=None)", _exponential,
     "numbers of the exponential distribution"),
    ("random(Tensor self, int? from_=None, int? to=None, *, Generator? generator=None)", _integers,
     "integers drawn uniformly from `from_` to `to`, exclusive"),
):  # fmt: skip
    _op = operator(
        _schema,
        _forward,
        inplace=True,
        method=False,
        public_name=False,
        derivatives={"self": lambda g: g * 0},
        doc=f"Fill with {_doc}.",
    )
    METHODS[_op.name.partition(".")[0] + "_"] = _op.inplace_function  # type: ignore[assignment]


def _with_from(function: Formula) -> Formula:
    """Return a method that takes its parameter ``from_`` as ``from`` too: a word that no parameter can have here."""

    @functools.wraps(function)
    def method(*args: Any, **kwargs: Any) -> Tensor:
        if "from" in kwargs:
            kwargs["from_"] = kwargs.pop("from")
        return function(*args, **kwargs)

    return method


for _name in ("uniform_", "random_"):
    METHODS[_name] = _with_from(METHODS[_name])


def _bernoulli(xp: Namespace, self: Array, generator: Generator | None = None) -> Array:
    _floating("bernoulli_tensor_cpu_p_", self.dtype)
    if type(self) is devices.ndarray and self.size and not (self.min() >= 0 and self.max() <= 1):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.\nProbabilities are in [0, 1].")
    return (_source(self, generator).draw("random", self.shape) < self).astype(self.dtype)


operator(
    "bernoulli(Tensor self, *, Generator? generator=None)",
    _bernoulli,
    out=True,
    derivatives={"self": lambda g: g * 0},
    doc="""Return ones with the probabilities `self`, else zeros.

    Raises RuntimeError where a number is no probability, or the dtype is none of floating point.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.bernoulli(gs.tensor([0.0, 1.0, 1.0]))
    tensor([0., 1., 1.])
    """,
)


def _poisson(xp: Namespace, self: Array, generator: Generator | None = None) -> Array:
    _floating("poisson_cpu", self.dtype)
    return _source(self, generator).draw("poisson", self).astype(self.dtype)


operator(
    "poisson(Tensor self, Generator? generator=None)",
    _poisson,
    method=False,
    derivatives={"self": lambda g: g * 0},
    doc="""Return numbers of the Poisson distribution with the rates `self`.

    Raises RuntimeError where the dtype is none of floating point.

    Examples
    --------
    >>> import gradscope as gs
    >>> drawn = gs.poisson(gs.tensor([0.0, 4.0]))
    >>> drawn[0], drawn[1] >= 0
    (tensor(0.), tensor(True))
    """,
)


def _normal_around(xp: Namespace, mean: Array, std: Operand, generator: RandomSource) -> Array:
    _need_deviation(std)
    like = mean + std
    return mean + std * _draw(_source(like, generator), "standard_normal", like.shape, like.dtype)


# PyTorch numbers the overloads: of the mean, of the standard deviation, of both.
operator(
    "normal.tensor_float(Tensor mean, float std=1, Generator? generator=None)",
    lambda xp, mean, std=1, generator=None: _normal_around(xp, mean, std, generator),
    node="NormalBackward1", method=False, derivatives={"mean": lambda g: g * 0}, doc="Normal numbers around `mean`.",
)  # fmt: skip
operator(
    "normal.float_tensor(Tensor std, float mean=0, Generator? generator=None)",
    lambda xp, std, mean=0, generator=None: _normal_around(xp, mean, std, generator),
    node="NormalBackward2", method=False, derivatives={"std": lambda g: g * 0}, doc="Normal numbers around `mean`.",
)  # fmt: skip
operator(
    "normal.tensor_tensor(Tensor mean, Tensor std, Generator? generator=None)",
    lambda xp, mean, std, generator=None: _normal_around(xp, mean, std, generator),
    promote="numeric", node="NormalBackward3", method=False,
    derivatives={"mean": lambda g: g * 0, "std": lambda g: g * 0}, doc="Normal numbers around `mean`.",
)  # fmt: skip


class Sampler(NamedTuple):
    """Draws in the place of the operators, from tensors that require grad: the draws may have a gradient.

    Attributes
    ----------
    multinomial, bernoulli, normal : callable
        Called with the tensor, and what else the call of the operator was given.
    """

    multinomial: Callable[[Tensor, int, bool], Tensor]
    bernoulli: Callable[[Tensor], Tensor]
    normal: Callable[[Tensor, Operand], Tensor]


# The sampler for all tensors that require grad; one tensor's own is in its TensorMeta.
sampler: Sampler | None = None


def _sampler_of(tensor: Tensor) -> Sampler | None:
    """Return what draws from a tensor in the place of the operators; None where the operators do."""
    own = sampler if sampler is not None or tensor._meta is None else tensor._meta.sampler
    return own if own is not None and state.local.grad_enabled and tensor.requires_grad else None


def normal(
    mean: Array,
    std: Operand = 1.0,
    size: Sizes = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType = None,
    device: Device = None,
    requires_grad: bool = False,
    layout: Layout = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return normal numbers of the given mean and standard deviation, tensors or (with `size`) numbers.

    Raises
    ------
    TypeError
        If neither a tensor nor a size says how many.

    See Also
    --------
    randn, Tensor.normal_

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.normal(0.0, 1.0, (2, 3)).shape
    gradscope.Size([2, 3])
    """
    if layout is not None or pin_memory:
        check_memory("normal", layout, pin_memory)
    if out is not None:
        return inplace_and_out.into(out, "normal", [mean, std], lambda: normal(mean, std, size, generator=generator))
    of_mean, of_std = isinstance(mean, Tensor), isinstance(std, Tensor)
    own = _sampler_of(mean) if of_mean and generator is None else None
    if own is not None:
        return own.normal(mean, std)
    if of_mean and of_std:
        return OPERATORS["normal.tensor_tensor"].function(mean, std, generator)
    if of_mean:
        return OPERATORS["normal.tensor_float"].function(mean, std, generator)
    if of_std:
        return OPERATORS["normal.float_tensor"].function(std, mean, generator)
    if size is None:
        raise TypeError("normal() received numbers only\nGive the size too: normal(mean, std, size).")
    _need_deviation(std)
    drawn = randn(size, generator=generator, dtype=dtype, device=device)._array * std + mean
    return finish(drawn.astype(numpy_dtype(dtype), copy=False), requires_grad)


bernoulli = OPERATORS["bernoulli"].function
poisson = OPERATORS["poisson"].function
bernoulli_fill = METHODS["bernoulli_"]


def bernoulli_(self: Tensor, p: Number = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with ones, with probability `p` (a number, or a tensor of probabilities), else zeros."""
    if isinstance(p, Tensor):
        self._check_inplace(general.wants_grad([self]))
        drawn = bernoulli(p.detach().expand(self.shape), generator=generator)
        return inplace_and_out.commit_inplace(OPERATORS["bernoulli.fill"], self, drawn._array, None, [self])
    return bernoulli_fill(self, p, generator=generator)


def multinomial_method(
    self: Tensor,
    num_samples: int | None = None,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    **others: Any,
) -> Tensor:
    """Return `num_samples` indices drawn with probabilities proportional to the rows.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([0.0, 1.0]).multinomial(1)
    tensor([1])
    """
    if num_samples is None or others:
        return self._multinomial_by_other_names(num_samples, replacement, generator, out, others)
    own = _sampler_of(self) if generator is None and out is None else None
    if own is not None:
        return own.multinomial(self, num_samples, replacement)
    return multinomial(self, num_samples, replacement, generator=generator, out=out)


_draw_bernoulli = METHODS["bernoulli"]


@functools.wraps(_draw_bernoulli)
def bernoulli_method(self: Tensor, *args: Any, **options: Any) -> Tensor:
    """Return ones with the probabilities `self`, else zeros."""
    if args or options or (own := _sampler_of(self)) is None:
        return _draw_bernoulli(self, *args, **options)
    return own.bernoulli(self)


METHODS["bernoulli_"] = bernoulli_
METHODS["bernoulli"] = bernoulli_method
METHODS["multinomial"] = multinomial_method
del _schema, _forward, _doc, _op, _name
