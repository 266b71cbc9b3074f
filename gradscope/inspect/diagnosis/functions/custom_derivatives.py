"""Whether the backward of a custom Function is the derivative of its forward: finite differences, after the fact."""

from __future__ import annotations

import contextlib
import inspect
import io
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy

from ....program_files import is_library_file
from ....runtime.call_sites import user_site
from ...adapters import Adapter
from ...adapters.native_adapter import location_of
from ...records.records import Location
from ...source.call_sites import line_of, place
from ...source.source_syntax import definition_line
from ..explanation import Explanation, adapter_of
from ..finding_limits import Limits
from ..watch import Watch

__all__ = ["CheckedFunction", "Functions", "functions"]

_MOST_ELEMENTS = 1 << 20  # elements that the tensors of a call may have: they are copied
_MOST_FUNCTIONS = 100  # of which a call is kept: a program may make them in a loop

_WRONG_HELP = "Compare the formulas; `gradscope.testing.assert_gradients` shows the elements."


@dataclass(frozen=True)
class CheckedFunction:
    """The verdict on one custom Function.

    Attributes
    ----------
    verdict : str
        ``'right'``, ``'wrong'``, ``'chosen'`` (a gradient that is no derivative, and cannot be meant to be one) or
        ``'unknown'``.
    location : Location or None
        The ``def`` of its backward.
    called : Location or None
        The call whose inputs were used.

    See Also
    --------
    functions : checks those that run in a block.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> class Double(gs.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         return grad_output * 2
    >>> with gi.functions() as watch:
    ...     Double.apply(gs.ones(2, requires_grad=True)).sum().backward()
    >>> watch.result.checked[0].name, watch.result.checked[0].verdict
    ('Double', 'right')
    """

    name: str
    verdict: str
    text: str
    location: Location | None
    called: Location | None

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        # Tables load when a notebook asks for one.
        from ...output.markup import element
        from ...output.notebook_html import note, page, table
        from ...records.record_html import bad_html, line_html

        verdict = bad_html(self.verdict) if self.verdict == "wrong" else self.verdict
        title = element("p", None, element("b", None, self.name), " · ", verdict)
        lines = (("backward", self.location), ("called", self.called))
        rows = [(what, line_html(line)) for what, line in lines if line is not None]
        return page(title, table(("", "line"), rows) if rows else "", note(self.text))


@dataclass(frozen=True)
class Functions(Explanation):
    """The verdicts on the custom Functions that have run.

    Attributes
    ----------
    checked : tuple of CheckedFunction
        Those that are wrong first.

    See Also
    --------
    functions : watches a block, and has them as its result.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> with gi.functions() as watch:
    ...     gs.ones(2, requires_grad=True).sum().backward()
    >>> watch.result.checked, bool(watch.result)
    ((), False)
    """

    checked: tuple[CheckedFunction, ...]

    @property
    def wrong(self) -> tuple[CheckedFunction, ...]:
        """The functions whose backward is not the derivative of their forward."""
        return tuple(function for function in self.checked if function.verdict == "wrong")

    def __bool__(self) -> bool:
        return bool(self.wrong)

    def __str__(self) -> str:
        return "\n".join(map(str, self.checked)) or "No custom Function has run with an input that requires grad."

    def _columns(self) -> Sequence[str]:
        return ("Function", "verdict", "what")

    def _rows(self) -> Sequence[Sequence[str]]:
        return [(function.name, function.verdict, function.text) for function in self.checked]


@dataclass(frozen=True)
class _Call:
    """The first call of a Function, its tensors copied; `given` are the arguments that were not."""

    function: Any
    args: tuple[Any, ...]
    called: Location | None
    given: tuple[Any, ...]


class functions(Watch):  # noqa: N801 - a context manager, called like a function
    """Context manager: note the custom Functions that run, to compare each backward with its forward afterwards.

    The first call of each with an input that requires grad is kept, its tensors copied. :attr:`result` runs the
    Function again on these copies, in float64 if it can: one that prints, counts or draws random numbers does so again,
    so that is best asked for when the program has done its work.

    Parameters
    ----------
    adapter : Adapter, optional
        Of one framework only; all by default.

    See Also
    --------
    updates

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> class Square(gs.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         (x,) = ctx.saved_tensors
    ...         return grad_output * x
    >>> with gi.functions() as watch:
    ...     Square.apply(gs.ones(2, requires_grad=True)).sum().backward()
    >>> [function.verdict for function in watch.result.checked]
    ['wrong']
    """

    limits = Limits()
    """How much a derivative, and two difference quotients, may differ."""

    def __init__(self, *, adapter: Adapter | None = None) -> None:
        self._adapter = adapter_of(None, adapter)
        self._calls: dict[Any, _Call] = {}
        self._found: dict[Any, CheckedFunction] = {}
        self._observation: Any = None

    @property
    def result(self) -> Functions:
        """What is found, Functions that have been looked at before left as they were found."""
        for function, call in list(self._calls.items()):
            if function not in self._found:
                self._found[function] = _checked(self._adapter, call, self.limits)
        return self._result()

    @property
    def result_unnoticed(self) -> Functions:
        """What one direction shows, in which all inputs move together; a program that goes on does not notice it.

        What the Functions print is dropped, and what random numbers they draw is drawn again. Those that were given
        more than tensors, numbers and text are left alone: they might change it.
        """
        for function, call in list(self._calls.items()):
            if function not in self._found and not any(map(_carries_state, call.given)):
                with _unnoticed(self._adapter):
                    self._found[function] = _checked(self._adapter, call, self.limits, _compared_along_one_direction)
        return self._result()

    def _result(self) -> Functions:
        order = ("wrong", "unknown", "chosen", "right")
        return Functions(tuple(sorted(self._found.values(), key=lambda found: order.index(found.verdict))))

    def __enter__(self) -> functions:
        self._observation = self._adapter.observe(self, forward=True, backward=False)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._observation.close()

    def function_applied(self, function: Any, args: tuple[Any, ...]) -> None:
        """Keep the first call of each Function whose inputs can be differentiated."""
        if function in self._calls or len(self._calls) >= _MOST_FUNCTIONS or _is_librarys(function):
            return
        tensors = [value for value in args if self._adapter.is_tensor(value)]
        if not any(_takes_part(tensor) for tensor in tensors):
            return
        # A later call may be small enough to check, or outside of the transform whose values end with it.
        if sum(tensor.numel() for tensor in tensors) > _MOST_ELEMENTS or None in map(self._adapter.region, tensors):
            return
        copies = tuple(self._copied(value) if self._adapter.is_tensor(value) else value for value in args)
        given = tuple(value for value in args if not self._adapter.is_tensor(value))
        self._calls[function] = _Call(function, copies, location_of(user_site(2)), given)

    def _copied(self, tensor: Any) -> Any:
        copy = self._adapter.copy(tensor)
        return copy.requires_grad_() if _takes_part(tensor) else copy


def _is_librarys(function: Any) -> bool:
    """Whether a Function is the framework's own."""
    code = getattr(inspect.unwrap(function.forward), "__code__", None)
    return code is not None and is_library_file(code.co_filename)


def _carries_state(value: Any) -> bool:
    """Whether running a Function again may change an argument that is no tensor."""
    if isinstance(value, tuple):
        return any(map(_carries_state, value))
    return not isinstance(value, (int, float, complex, str, bytes, slice, type(None), type(...)))


@contextlib.contextmanager
def _unnoticed(adapter: Adapter) -> Iterator[None]:
    """Let random numbers go on afterwards as if none had been drawn; drop what is printed, and warnings."""
    drawn, drawn_by_numpy = random.getstate(), numpy.random.get_state()  # noqa: NPY002 - what a Function may draw from
    dropped = io.StringIO()
    try:
        with (
            adapter.fork_random(),
            contextlib.redirect_stdout(dropped),
            contextlib.redirect_stderr(dropped),
            warnings.catch_warnings(action="ignore"),
        ):
            yield
    finally:
        random.setstate(drawn)
        numpy.random.set_state(drawn_by_numpy)  # noqa: NPY002 - the same


def _takes_part(tensor: Any) -> bool:
    differentiable: bool = tensor.requires_grad and tensor.is_floating_point()
    return differentiable


# --- one Function -----------------------------------------------------------------------------------------------------


class _Precision(NamedTuple):
    """In which dtype a Function is run, the step of the difference quotient, and what rounding may make of 0."""

    wide: bool
    step: float
    absolute: float


_DOUBLE = _Precision(True, 1e-6, 1e-7)
_AS_GIVEN = _Precision(False, 1e-2, 1e-3)


class _UnknownError(Exception):
    """The derivative cannot be judged, for the reason in the message."""


def _checked(
    adapter: Adapter, call: _Call, limits: Limits, compared: Callable[[_Trial], tuple[str, str]] | None = None
) -> CheckedFunction:
    """Run a Function again, and say what is found: by :func:`_compared` unless given."""
    try:
        verdict, text = (compared or _compared)(_trial(adapter, call, limits))
    except _UnknownError as error:
        verdict, text = "unknown", f"was not checked: {error}"
    except Exception as error:
        first, *_ = str(error).splitlines() or [""]
        verdict, text = "unknown", f"was not checked: run again it raised {type(error).__name__}: {first}"
    location = _backward_of(call.function)
    where = "" if location is None else f" ({place(location)})"
    return CheckedFunction(
        call.function.__name__, verdict, f"{call.function.__name__}.backward{where} {text}", location, call.called
    )


def _backward_of(function: Any) -> Location | None:
    method = inspect.unwrap(function.vjp if "vjp" in vars(function) else function.backward)
    code = getattr(method, "__code__", None)
    return None if code is None else line_of(code.co_filename, definition_line(code), code.co_qualname)


def _trial(adapter: Adapter, call: _Call, limits: Limits) -> _Trial:
    try:
        return _Trial(adapter, call, _DOUBLE, limits)
    except _UnknownError:
        raise
    except Exception:  # the function may support one dtype alone
        return _Trial(adapter, call, _AS_GIVEN, limits)


class _Trial:
    """A Function on copies of what it was called with; its results weighted at random and added up.

    Attributes
    ----------
    inputs : list of int
        Which arguments are differentiated.
    gradients : list of (ndarray or None)
        Of these, as its backward has it.
    error : float
        By what share its derivative may differ from a difference quotient.
    smooth : float
        How much two difference quotients may differ where a derivative exists.
    """

    def __init__(self, adapter: Adapter, call: _Call, precision: _Precision, limits: Limits) -> None:
        self._adapter = adapter
        self.precision = precision
        self.smooth = limits.smooth
        self.error = limits.derivative_error if precision.wide else limits.derivative_error_as_given
        self._function = call.function
        self._random = numpy.random.default_rng(0)
        self.args = [self._fresh(value) if adapter.is_tensor(value) else value for value in call.args]
        self.inputs = [nr for nr, value in enumerate(self.args) if adapter.is_tensor(value) and value.requires_grad]
        outputs = self.outputs({})
        self._graded = [nr for nr, value in enumerate(outputs) if value.requires_grad and value.is_floating_point()]
        if not self._graded:
            raise _UnknownError("it returns nothing that requires grad")
        self._weights = [self._random.standard_normal(tuple(outputs[nr].shape)) for nr in self._graded]
        self.gradients = self._differentiated(outputs)
        here = self.loss({})
        if not numpy.isfinite(here):
            raise _UnknownError("its forward gives NaN or Inf there")
        if self.loss({}) != here:
            raise _UnknownError("its forward gives another result each time")

    def _fresh(self, tensor: Any) -> Any:
        fresh = self._adapter.copy(tensor)
        fresh = fresh.double() if self.precision.wide and fresh.is_floating_point() else fresh
        return fresh.requires_grad_() if tensor.requires_grad else fresh

    def _differentiated(self, outputs: Sequence[Any]) -> list[Any]:
        adapter = self._adapter
        chosen = [outputs[nr] for nr in self._graded]
        grads = [adapter.tensor_like(w, adapter.spec(value)) for w, value in zip(self._weights, chosen)]
        leaves = [self.args[nr] for nr in self.inputs]
        found = adapter.gradients(chosen, grads, leaves)
        return [None if grad is None else numpy.array(adapter.to_host(grad)) for grad in found]

    def outputs(self, moved: dict[int, Any]) -> list[Any]:
        """Return the Function's results with some arguments replaced."""
        args = [moved.get(nr, value) for nr, value in enumerate(self.args)]
        # The function is given clones: it may write them, as it may have written what it was first called with.
        given = [value.clone() if self._adapter.is_tensor(value) else value for value in args]
        found = self._function.apply(*given)
        found = found if isinstance(found, (tuple, list)) else [found]
        return [value for value in found if self._adapter.is_tensor(value)]

    def loss(self, moved: dict[int, Any]) -> float:
        """Return the weighted sum of its results."""
        with self._adapter.quiet():
            outputs = self.outputs(moved)
        hosts = [self._adapter.to_host(outputs[nr]) for nr in self._graded]
        with numpy.errstate(all="ignore"):  # an infinite difference has a verdict of its own
            return float(sum(numpy.sum(weight * host) for weight, host in zip(self._weights, hosts)))

    def host(self, nr: int) -> Any:
        """Return the values of an argument."""
        return numpy.array(self._adapter.to_host(self.args[nr].detach()))

    def direction(self, nr: int) -> Any:
        """Return a direction in which an argument may move."""
        return self._random.standard_normal(tuple(self.args[nr].shape))

    def scale(self, nr: int) -> float:
        """Return how large an argument is, 1 at least: by how many steps it is moved."""
        return max(1.0, float(numpy.max(numpy.abs(self.host(nr)), initial=0.0)))

    def _moved(self, nr: int, by: Any) -> dict[int, Any]:
        spec = self._adapter.spec(self.args[nr])
        return {nr: self._adapter.tensor_like(self.host(nr) + by, spec)}

    def quotient(self, directions: dict[int, Any], step: float) -> float:
        """Return how much the weighted sum changes along a direction, by the central difference quotient.

        Parameters
        ----------
        directions : dict of int to ndarray
            How each argument moves that does.
        """

        def loss(by: float) -> float:
            moved = (self._moved(nr, by * direction) for nr, direction in directions.items())
            return self.loss({nr: value for one in moved for nr, value in one.items()})

        return (loss(step) - loss(-step)) / (2 * step)

    def is_flat(self, nr: int, direction: Any, step: float) -> bool:
        """Whether the results do not change at all where an argument moves a little."""
        return self.loss(self._moved(nr, step * direction)) == self.loss({})

    def hands_on(self, nr: int, direction: Any) -> bool:
        """Whether a result is an argument as it was given, wherever that moves."""
        moved = self._moved(nr, direction)
        with self._adapter.quiet():
            hosts = [self._adapter.to_host(value) for value in self.outputs(moved)]
        return any(numpy.array_equal(host, self._adapter.to_host(moved[nr])) for host in hosts)


def _compared_along_one_direction(trial: _Trial) -> tuple[str, str]:
    """Move all arguments at once, and look at each alone only where that disagrees.

    An argument for which the backward returns None stands still: another finding tells of it where it matters.
    """
    precision = trial.precision
    gradients = {nr: gradient for nr, gradient in zip(trial.inputs, trial.gradients) if gradient is not None}
    directions = {nr: trial.scale(nr) * trial.direction(nr) for nr in gradients}
    told = float(sum(numpy.sum(gradient * directions[nr]) for nr, gradient in gradients.items()))
    if _agree(told, trial.quotient(directions, precision.step), trial.error, precision.absolute):
        return "right", "is the derivative of its forward, along one direction"
    return _compared_one_by_one(trial, gradients)


def _compared(trial: _Trial) -> tuple[str, str]:
    """Look at each argument alone; None for a gradient is taken for zero."""
    zero = {nr: numpy.zeros(tuple(trial.args[nr].shape)) for nr in trial.inputs}
    given = {nr: gradient for nr, gradient in zip(trial.inputs, trial.gradients) if gradient is not None}
    return _compared_one_by_one(trial, {**zero, **given})


def _compared_one_by_one(trial: _Trial, gradients: dict[int, Any]) -> tuple[str, str]:
    """Return the verdict and what is to be said."""
    chosen, precision = "", trial.precision
    for nr, gradient in gradients.items():
        direction = trial.direction(nr)
        step = precision.step * trial.scale(nr)
        told, measured = float(numpy.sum(gradient * direction)), trial.quotient({nr: direction}, step)
        if _agree(told, measured, trial.error, precision.absolute):
            continue
        if not _agree(measured, trial.quotient({nr: direction}, step * 8), trial.smooth, precision.absolute):
            raise _UnknownError(f"its forward has no derivative at what input {nr} was")
        if trial.hands_on(nr, direction):
            chosen = f"changes the gradient of input {nr}, which its forward hands on as it is: chosen, no derivative"
        elif trial.is_flat(nr, direction, step):
            chosen = f"gives input {nr} a gradient, though its forward does not change with it: chosen, no derivative"
        else:
            return "wrong", _difference(trial, nr, told, measured)
    return ("chosen", chosen) if chosen else ("right", "is the derivative of its forward")


def _agree(one: float, other: float, relative: float, absolute: float) -> bool:
    return abs(one - other) <= relative * max(abs(one), abs(other)) + absolute


def _difference(trial: _Trial, nr: int, told: float, measured: float) -> str:
    shape = list(trial.args[nr].shape)
    return (
        f"is not the derivative of its forward: along one direction input {nr}, of shape {shape}, has the gradient "
        f"{told:.6g}, and by finite differences {measured:.6g}\n  {_WRONG_HELP}"
    )
