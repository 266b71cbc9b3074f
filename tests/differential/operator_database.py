"""PyTorch's own database of operators, run by gradscope and by PyTorch on the same inputs.

``torch.testing._internal.common_methods_invocations.op_db`` comes with PyTorch: for each operator the forms that it has
(method, in place, ``out=``, aliases), the dtypes that it takes, inputs for it, and inputs that it refuses.
:func:`failures` compares one entry in each of its aspects:

===================  ==================================================================================
aspect               what is compared
===================  ==================================================================================
``missing``          gradscope has a function of that name; nothing else is compared where it has not
``values``           results in float64 (or, where it does not take that, another dtype)
``gradients``        the derivative by every input, on all differentiable results at once
``second gradients`` the derivative of that, by every input and by the incoming gradients
``complex``          the three above in complex128
``dtypes``           results in a few further dtypes
``names``            the method, the aliases and Python's operators
``in place``         the in-place form: result, gradients, what it refuses
``out``              the results written into given tensors
``error N``          the Nth wrong call raises the class that PyTorch raises
===================  ==================================================================================

A table of what is known to differ stands in :mod:`tests.differential.operators_left_out`. The test runs a few samples
an entry; all of them, which takes a few minutes, run with::

    python -m tests.differential.operator_database --all
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo

import gradscope as gs
from tests.differential.operators_left_out import aspects_left_out

__all__ = ["ENTRIES", "failures", "refusals"]

ENTRIES = {op.full_name: op for op in op_db}

# What these return is drawn at random, or is memory as it was found: shapes and dtypes are compared.
UNDETERMINED = """
    bernoulli cauchy empty empty_like empty_permuted empty_strided exponential geometric log_normal multinomial
    native_dropout_backward new_empty new_empty_strided nn.functional.alpha_dropout nn.functional.dropout
    nn.functional.dropout2d nn.functional.dropout3d nn.functional.feature_alpha_dropout
    nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d nn.functional.rrelu normal pca_lowrank
    rand_like randint randint_like randn randn_like svd_lowrank uniform
"""

FURTHER_DTYPES = (torch.float32, torch.int64, torch.bool, torch.float16, torch.bfloat16, torch.uint8)
FLOATS = (torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128)

# By how much results may differ, relative to the largest expected value.
TOLERANCE = {
    torch.bfloat16: 5e-2,
    torch.float16: 2e-2,
    torch.float32: 1e-4,
    torch.complex64: 1e-4,
    torch.float64: 1e-7,
    torch.complex128: 1e-7,
}
GRADIENT_TOLERANCE = 1e-5

# How many samples of an entry the test runs, spread evenly over those that there are, and how many elements a tensor in
# one may have: grid_sampler_3d has samples of millions, which take a minute.
SAMPLES = 30
ELEMENTS = 100_000


class CounterpartMissingError(LookupError):
    """Gradscope has nothing under the name of something in PyTorch."""


# --- what stands in gradscope for something in PyTorch ----------------------------------------------------------------


def _public_paths() -> dict[int, str]:
    """Return where each of PyTorch's public functions is found: its identity, and its path below ``torch``."""
    rooms = {
        "Tensor.": torch.Tensor,
        "masked.": torch.masked,
        "signal.windows.": torch.signal.windows,
        "special.": torch.special,
        "fft.": torch.fft,
        "linalg.": torch.linalg,
        "nn.functional.": torch.nn.functional,
        "": torch,
    }
    return {id(getattr(room, name)): prefix + name for prefix, room in rooms.items() for name in dir(room)}


PATHS = _public_paths()


def resolve(path: str) -> Any:
    """Return what gradscope has under a path such as ``"linalg.svd"``."""
    found: Any = gs
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise CounterpartMissingError(path) from None
    return found


def counterpart(value: Any, known: dict[Any, Any] | None = None) -> Any:
    """Return what stands in gradscope for a value of PyTorch's: a tensor, dtype, function, or a structure of them.

    Tensors are copies with the same strides, and a tensor met twice becomes one tensor; `known` maps what was met.
    """
    known = {} if known is None else known
    if id(value) in known:
        return known[id(value)]
    if isinstance(value, torch.Tensor):
        result = _tensor(value, known)
    elif isinstance(value, torch.Size):
        result = gs.Size(value)
    elif isinstance(value, tuple | list):
        return type(value)(counterpart(v, known) for v in value)
    elif isinstance(value, dict):
        return {k: counterpart(v, known) for k, v in value.items()}
    elif isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return resolve(str(value).removeprefix("torch."))
    elif isinstance(value, torch.device):
        return gs.device(str(value))
    elif value is torch:
        return gs
    elif isinstance(value, torch.nn.Module):
        return resolve(f"nn.{type(value).__name__}")()
    elif callable(value) and not isinstance(value, type | OpInfo):
        result = _function(value, known)
    else:
        return value
    known[id(value)] = result
    return result


def _tensor(source: Any, known: dict[Any, Any]) -> gs.Tensor:
    # A view of a copy of the whole memory: overlapping and partial views, and tensors that share memory, stay so.
    conj, neg = source.is_conj(), source.is_neg()
    plain = source.detach()  # and below what lies in memory
    plain = plain.conj() if conj else plain
    plain = plain._neg_view() if neg else plain
    storage = plain.untyped_storage()
    place = (storage.data_ptr(), plain.dtype)
    if place not in known:
        length = storage.nbytes() // plain.element_size()
        memory = torch.as_strided(plain, (length,), (1,), 0)
        bits = memory.view(torch.int16) if plain.dtype is torch.bfloat16 else memory
        copied = gs.from_numpy(bits.numpy().copy())
        known[place] = copied if bits is memory else copied.view(gs.bfloat16)
    view = known[place].as_strided(tuple(plain.shape), plain.stride(), plain.storage_offset())
    view = view.conj() if conj else view
    view = view._neg_view() if neg else view
    return view.detach().requires_grad_(source.requires_grad)


def _function(function: Any, known: dict[Any, Any]) -> Any:
    if id(function) in PATHS:
        return resolve(PATHS[id(function)])
    if isinstance(function, functools.partial):
        inner, args, keywords = (counterpart(v, known) for v in (function.func, function.args, function.keywords))
        return functools.partial(inner, *args, **keywords)
    if isinstance(function, types.FunctionType):
        return _rewritten(function, known)
    raise CounterpartMissingError(getattr(function, "__name__", type(function).__name__))


def _rewritten(function: types.FunctionType, known: dict[Any, Any]) -> Any:
    """Return a function of PyTorch's tests as it would have been written for gradscope."""
    if function.__name__ == "wrapper_set_seed":
        return lambda op, *args, **kwargs: op(*args, **kwargs)
    if not function.__module__.startswith("torch.testing."):
        raise CounterpartMissingError(function.__qualname__)
    cells = function.__closure__ and tuple(
        types.CellType(counterpart(c.cell_contents, known)) for c in function.__closure__
    )
    defaults = counterpart(function.__defaults__, known)
    scope: dict[str, Any] = {}
    result = types.FunctionType(function.__code__, scope, function.__name__, defaults, cells)
    result.__kwdefaults__ = counterpart(function.__kwdefaults__, known)
    known[id(function)] = result  # before what it calls, which may be itself
    names = {name for code in _codes(function.__code__) for name in code.co_names} & function.__globals__.keys()
    scope.update({name: counterpart(function.__globals__[name], known) for name in names})
    return result


def _codes(code: types.CodeType) -> Iterable[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def function_of(op: Any) -> Any:
    """Return gradscope's function for an entry, which is PyTorch's or a few lines that call it."""
    function = counterpart(op.op)
    for path in (op.name, f"Tensor.{op.name}", f"Tensor.{op.name}_"):
        if id(op.op) in PATHS or not isinstance(outcome(resolve, path)[1], CounterpartMissingError):
            return function
    raise CounterpartMissingError(op.name)


# --- running and comparing --------------------------------------------------------------------------------------------


class Differs(AssertionError):  # noqa: N818 - it is not an error of the program
    """Gradscope and PyTorch differ; the text says in what."""


def outcome(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, Exception | None]:
    """Return what a call returned, or what it raised."""
    try:
        return function(*args, **kwargs), None
    except Exception as error:
        return None, error


def error_class(error: BaseException) -> type[BaseException]:
    """Return the class of Python's that an error is an instance of."""
    return next(c for c in type(error).__mro__ if c.__module__ == "builtins")


def told(error: BaseException) -> str:
    """Return an error as one line."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]


def leaves_of(value: Any) -> list[Any]:
    """Return the tensors and other values in nested tuples, lists and dictionaries."""
    if isinstance(value, tuple | list):
        return [leaf for v in value for leaf in leaves_of(v)]
    if isinstance(value, dict):
        return [leaf for v in value.values() for leaf in leaves_of(v)]
    return [value]


def tensors_in(value: Any) -> list[Any]:
    """Return the tensors among those."""
    return [leaf for leaf in leaves_of(value) if isinstance(leaf, gs.Tensor | torch.Tensor)]


def array(tensor: Any) -> numpy.ndarray:
    """Return a tensor's values."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    return (plain.float() if str(plain.dtype).endswith("bfloat16") else plain).numpy(force=True)


def same(mine: Any, theirs: Any, what: str, *, values: bool = True, tolerance: float | None = None) -> None:
    """Raise unless two results are the same up to rounding."""
    mine, theirs = leaves_of(mine), leaves_of(theirs)
    if len(mine) != len(theirs):
        raise Differs(f"{what}: {len(mine)} results, not {len(theirs)}")
    for index, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        place = what if len(theirs) == 1 else f"{what} {index}"
        if isinstance(b, torch.Tensor):
            _same_tensor(a, b, place, values=values, tolerance=tolerance)
        elif values and counterpart(b) != a and not (a != a and b != b):
            raise Differs(f"{place}: {a!r}, not {b!r}")


def _same_tensor(a: Any, b: Any, place: str, *, values: bool, tolerance: float | None) -> None:
    if not isinstance(a, gs.Tensor):
        raise Differs(f"{place}: {type(a).__name__}, not a tensor")
    facts = [(x.dtype, tuple(x.shape), x.requires_grad) for x in (a, b)]
    mine, theirs = (f"{str(d).rpartition('.')[2]}{list(s)}{', requires grad' * r}" for d, s, r in facts)
    if mine != theirs:
        raise Differs(f"{place}: {mine}, not {theirs}")
    if not values:
        return
    got, expected = array(a), array(b)
    tolerance = tolerance or TOLERANCE.get(b.dtype, 0)
    scale = max(1.0, numpy.abs(expected[numpy.isfinite(expected)]).max(initial=0.0)) if tolerance else 0.0
    if not numpy.allclose(got, expected, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
        raise Differs(f"{place}:\n{got}\nnot\n{expected}")


def weights(lib: Any, tensor: Any, phase: float) -> Any:
    """Return an incoming gradient for a tensor: the same numbers in both libraries."""
    numbers = numpy.cos(numpy.arange(tensor.numel()) + phase)
    if tensor.dtype.is_complex:
        numbers = numbers + 1j * numpy.sin(2 * numpy.arange(tensor.numel()) + phase)
    return lib.tensor(numbers.reshape(tuple(tensor.shape)), dtype=tensor.dtype, requires_grad=True)


def gradients(lib: Any, outputs: Any, inputs: Sequence[Any], *, twice: bool) -> list[list[Any]]:
    """Return the gradients by `inputs`, and if `twice` those of them by `inputs` and by the incoming gradients."""
    outputs = [o for o in tensors_in(outputs) if o.requires_grad]
    seeds = [weights(lib, o, 0.3 + i) for i, o in enumerate(outputs)]
    first = list(lib.autograd.grad(outputs, inputs, seeds, create_graph=twice, allow_unused=True))
    if not twice:
        return [first]
    graded = [g for g in first if g is not None and g.requires_grad]
    if not graded:
        return [first, [None] * (len(inputs) + len(seeds))]
    further = [weights(lib, g, 1.7 + i).detach() for i, g in enumerate(graded)]
    return [first, list(lib.autograd.grad(graded, [*inputs, *seeds], further, allow_unused=True))]


def filled(grads: Sequence[Any], shapes: Sequence[Any]) -> list[Any]:
    """Return gradients as arrays, with zeros where there is none."""
    return [numpy.zeros(tuple(s.shape)) if g is None else array(g) for g, s in zip(grads, shapes, strict=False)]


def seed() -> None:
    """Make what the database draws the same each time."""
    torch.manual_seed(0)
    random.seed(0)
    numpy.random.seed(0)  # noqa: NPY002 - it is what PyTorch's tests draw from


def drops(op: Any, sample: Any) -> bool:
    """Whether attention drops weights at random."""
    if op.name == "nn.functional.multi_head_attention_forward":
        return bool(sample.kwargs.get("training", True))
    return bool(sample.kwargs.get("dropout_p"))


def is_small(sample: Any) -> bool:
    """Whether the test runs a sample."""
    return all(t.numel() <= ELEMENTS for t in tensors_in((sample.input, sample.args, sample.kwargs)))


class Case:
    """One sample of an entry, for both libraries."""

    def __init__(self, op: Any, sample: Any, number: int) -> None:
        self.number = number
        self.sample = sample
        self.theirs = (sample.input, *sample.args), sample.kwargs
        # What makes results unique that are so up to a sign, a phase or an order only: of others the identity.
        self.process = sample.output_process_fn_grad
        self.unique = self.process.__module__ == type(sample).__module__
        self.determined = op.name not in UNDETERMINED.split() and not drops(op, sample)
        self.compared = self.determined and self.unique

    def mine(self) -> tuple[Any, Any]:
        """Return the arguments as gradscope's, new ones each time."""
        known: dict[Any, Any] = {}
        return counterpart(self.theirs[0], known), counterpart(self.theirs[1], known)

    def __str__(self) -> str:
        return f"sample {self.number}: {self.sample.summary()}"


class Comparison:
    """One entry of the database with the number of samples to run of it."""

    def __init__(self, op: Any, limit: int | None) -> None:
        self.op = op
        self.limit = limit
        self.function = function_of(op)
        self.dtypes = op.supported_dtypes("cpu")
        self.graded_dtypes = op.supported_backward_dtypes("cpu") if op.supports_autograd else set()

    @property
    def main_dtype(self) -> Any:
        """The dtype of the first comparison."""
        return next(d for d in (torch.float64, torch.int64, torch.bool, *FLOATS) if d in self.dtypes)

    def cases(self, dtype: Any, limit: int | None, *, grad: bool = False) -> list[Case]:
        """Return an even spread of the samples in `dtype`."""
        seed()
        # Not op.sample_inputs(), which looks through the stack for a test case, and seeds again for each sample.
        samples = list(enumerate(self.op.sample_inputs_func(self.op, "cpu", dtype, requires_grad=grad)))
        if limit:
            samples = [(number, sample) for number, sample in samples if is_small(sample)]
        chosen = numpy.linspace(0, len(samples) - 1, min(limit or len(samples), len(samples))).round().astype(int)
        return [Case(self.op, samples[i][1], samples[i][0]) for i in chosen]

    def compare(self, case: Case, *, grad: bool, twice: bool) -> list[tuple[str, str]]:
        """Return in which aspects one sample differs, and how."""
        args, kwargs = case.theirs
        expected, refused = outcome(self.op.op, *args, **kwargs)
        if refused is not None:
            return []
        my_args, my_kwargs = case.mine()
        try:
            result = self.function(*my_args, **my_kwargs)
            same(result, expected, "result", values=case.compared)
            if case.determined and not case.unique:
                same(counterpart(case.process)(result), case.process(expected), "result made unique")
        except Exception as error:
            return [("values", problem(case, error))]
        if not grad or not case.determined or not any(t.requires_grad for t in tensors_in(expected)):
            return []
        return self._gradients(case, (my_args, my_kwargs), result, expected, twice)

    def _gradients(self, case: Case, mine: Any, result: Any, expected: Any, twice: bool) -> list[tuple[str, str]]:
        inputs = [t for t in tensors_in(case.theirs) if t.requires_grad]
        theirs, refused = outcome(gradients, torch, case.process(expected), inputs, twice=twice)
        if refused is not None and twice:
            return self._gradients(case, mine, result, self.op.op(*case.theirs[0], **case.theirs[1]), False)
        if refused is not None:
            return []
        my_inputs = [t for t in tensors_in(mine) if t.requires_grad]
        aspect = "gradients"
        try:
            outputs = counterpart(case.process)(result)
            first = gradients(gs, outputs, my_inputs, twice=False) if not twice else None
            if twice:
                both = gradients(gs, outputs, my_inputs, twice=True)
                first = both[:1]
            same_gradients(first[0], theirs[0], inputs, "gradient")
            aspect = "second gradients"
            if twice:
                same_gradients(both[1], theirs[1], None, "second gradient")
        except Exception as error:
            return [(aspect, problem(case, error))]
        return []

    # The aspects: each yields what differs.

    def main(self) -> Iterable[tuple[str, str]]:
        """Yield differences in values, gradients and second gradients."""
        grad = self.main_dtype in self.graded_dtypes
        for case in self.cases(self.main_dtype, self.limit, grad=grad):
            yield from self.compare(case, grad=grad, twice=grad and self.op.supports_gradgrad)

    def complex(self) -> Iterable[tuple[str, str]]:
        """Yield the same in complex128."""
        if torch.complex128 not in self.dtypes or self.main_dtype is torch.complex128:
            return
        grad = torch.complex128 in self.graded_dtypes
        for case in self.cases(torch.complex128, self.limit, grad=grad):
            for aspect, text in self.compare(case, grad=grad, twice=grad and self.op.supports_gradgrad):
                yield "complex", f"{aspect}, {text}"

    def further_dtypes(self) -> Iterable[tuple[str, str]]:
        """Yield differences of results in other dtypes."""
        for dtype in FURTHER_DTYPES:
            if dtype in self.dtypes and dtype is not self.main_dtype:
                for case in self.cases(dtype, self.limit and 2):
                    for _, text in self.compare(case, grad=False, twice=False):
                        yield "dtypes", f"{dtype}, {text}"

    def names(self) -> Iterable[tuple[str, str]]:
        """Yield differences between the forms of an operator that do the same."""
        op = self.op
        forms = [op.method_variant, op.operator_variant]
        forms += [form for alias in op.aliases for form in (alias.op, alias.method_variant)]
        for form in filter(None, forms):
            for case in self.cases(self.main_dtype, 1):
                yield from self._form(form, case)

    def _form(self, form: Any, case: Case) -> Iterable[tuple[str, str]]:
        args, kwargs = case.theirs
        expected, refused = outcome(form, *args, **kwargs)
        if refused is not None:
            return
        try:
            mine = form if getattr(form, "__module__", "") == "_operator" else counterpart(form)
            my_args, my_kwargs = case.mine()
            same(mine(*my_args, **my_kwargs), expected, "result", values=case.compared)
        except Exception as error:
            name = PATHS.get(id(form)) or getattr(form, "__name__", repr(form))
            yield "names", f"{name}, {problem(case, error)}"

    def inplace(self) -> Iterable[tuple[str, str]]:
        """Yield differences of the in-place form."""
        if self.op.inplace_variant is None:
            return
        grad = self.main_dtype in self.graded_dtypes
        for case in self.cases(self.main_dtype, self.limit and 3, grad=grad):
            if isinstance(case.sample.input, torch.Tensor):
                yield from self._inplace(case)

    def _inplace(self, case: Case) -> Iterable[tuple[str, str]]:
        expected, refused = outcome(run_inplace, self.op.inplace_variant, torch, *case.theirs)
        graded = not isinstance(refused, NotImplementedError)  # by PyTorch, for some
        if not graded:
            expected, refused = outcome(run_inplace, self.op.inplace_variant, torch, *case.theirs, graded=False)
        try:
            function = counterpart(self.op.inplace_variant)
            result, mine = outcome(run_inplace, function, gs, *case.mine(), graded=graded)
            if refused is not None:
                same_refusal(mine, refused)
            elif mine is not None:
                raise mine
            else:
                same(result, expected, "result or gradient", values=case.determined, tolerance=GRADIENT_TOLERANCE)
        except Exception as error:
            yield "in place", problem(case, error)

    def out(self) -> Iterable[tuple[str, str]]:
        """Yield differences of what is written into ``out=``."""
        if not self.op.supports_out:
            return
        for case in self.cases(self.main_dtype, self.limit and 2):
            args, kwargs = case.theirs
            expected, refused = outcome(self.op.op, *args, **kwargs)
            if refused is None:
                yield from self._out(case, expected)

    def _out(self, case: Case, expected: Any) -> Iterable[tuple[str, str]]:
        args, kwargs = case.theirs
        given = torch.utils._pytree.tree_map_only(torch.Tensor, torch.ones_like, expected)
        given = tuple(given) if isinstance(given, tuple) else given
        mine = counterpart(given)
        returned, refused = outcome(self.op.op, *args, **kwargs, out=given)
        try:
            my_args, my_kwargs = case.mine()
            result, error = outcome(self.function, *my_args, **my_kwargs, out=mine)
            if refused is not None:
                same_refusal(error, refused)
            elif error is not None:
                raise error
            else:
                same(mine, given, "out", values=case.compared)
                for a, b in zip(tensors_in(result), tensors_in(mine), strict=returned is not None):
                    if a is not b:
                        raise Differs("what is returned is not what was given as out")
        except Exception as problem_met:
            yield "out", problem(case, problem_met)

    def errors(self) -> Iterable[tuple[str, str]]:
        """Yield wrong calls that are not refused as PyTorch refuses them."""
        for case, refused in refusals(self.op):
            try:
                same_refusal(outcome(self.call, case)[1], refused)
            except Differs as error:
                yield f"error {case.number}", problem(case, error)

    def call(self, case: Case) -> Any:
        """Return what gradscope returns for a sample."""
        args, kwargs = case.mine()
        return self.function(*args, **kwargs)


def run_inplace(function: Any, lib: Any, args: Any, kwargs: Any, *, graded: bool = True) -> list[Any]:
    """Return what an in-place form wrote and returned, and if `graded` the gradients by all inputs."""
    inputs = [t for t in tensors_in((args, kwargs)) if t.requires_grad]
    with lib.set_grad_enabled(graded):
        written = args[0].clone()
        result = function(written, *args[1:], **kwargs)
    if result is not written:
        raise Differs("the in-place form does not return what it was given")
    found = [result.detach(), result.requires_grad]
    if inputs and result.requires_grad:
        found += [None if g is None else g.detach() for g in gradients(lib, result, inputs, twice=False)[0]]
    return found


def same_refusal(mine: Exception | None, theirs: Exception) -> None:
    """Raise unless both errors are of one class of Python's."""
    if mine is None:
        raise Differs(f"nothing raised; PyTorch: {told(theirs)}")
    if error_class(mine) is not error_class(theirs):
        raise Differs(f"{told(mine)}; PyTorch: {told(theirs)}")


def same_gradients(mine: Sequence[Any], theirs: Sequence[Any], inputs: Sequence[Any] | None, what: str) -> None:
    """Raise unless gradients are the same; where PyTorch has none there may be zeros."""
    for index, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        if a is None or b is None:
            only = [array(x) for x in (a, b) if x is not None]
            if only and not numpy.allclose(only[0], 0, atol=GRADIENT_TOLERANCE):
                raise Differs(f"{what} {index}: {only[0]}, {'not None' if b is None else 'which is None here'}")
            continue
        tolerance = max(GRADIENT_TOLERANCE, TOLERANCE[b.dtype])
        same(a.detach(), b.detach(), f"{what} {index}", tolerance=tolerance)


def problem(case: Case, error: Exception) -> str:
    """Return what happened with a sample, as text."""
    if isinstance(error, Differs):
        return f"{case}\n{error}"
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{case}\n{told(error)} ({place.filename.rpartition('/')[2]}:{place.lineno})"


def refusals(op: Any) -> list[tuple[Case, Exception]]:
    """Return the wrong calls of an entry, and what PyTorch says to them."""
    if op.error_inputs_func is None:
        return []
    seed()
    cases = [Case(op, wrong.sample_input, number) for number, wrong in enumerate(op.error_inputs_func(op, "cpu"))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = [(case, outcome(op.op, *case.theirs[0], **case.theirs[1])[1]) for case in cases]
    return [(case, error) for case, error in said if error is not None]


def failures(name: str, limit: int | None = SAMPLES) -> dict[str, str]:
    """Return the aspects in which an entry differs from PyTorch, and how; up to `limit` samples are run of each."""
    op = ENTRIES[name]
    if not op.supported_dtypes("cpu"):
        return {"missing": "PyTorch's runs on other devices only"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            comparison = Comparison(op, limit)
        except CounterpartMissingError as missing:
            return {"missing": f"gradscope has no {missing}"}
        found: dict[str, str] = {}
        parts = (comparison.main, comparison.complex, comparison.further_dtypes, comparison.names)
        for part in (*parts, comparison.inplace, comparison.out, comparison.errors):
            for aspect, text in part():
                found.setdefault(aspect, text)
        return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare entries and print what differs and why; return 1 if that is not what the table says."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.operator_database", description="A long run.")
    parser.add_argument("entries", nargs="*", metavar="ENTRY", help="names of entries; all of them without one")
    parser.add_argument("--all", action="store_true", help="run all samples, not a few of each entry")
    options = parser.parse_args(arguments)
    table = aspects_left_out(all_samples=options.all)
    unexpected = 0
    for name in options.entries or ENTRIES:
        found, known = failures(name, None if options.all else SAMPLES), table.get(name, {})
        for aspect, text in found.items():
            print(f"--- {name}: {aspect}\n{known.get(aspect, text)}", flush=True)
        for aspect in known.keys() - found.keys():
            print(f"--- {name}: {aspect}\nagrees now: take it out of tests/differential/operators_left_out.py")
        unexpected += known.keys() != found.keys()
    print(f"{unexpected} entries differ from what the table says")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
