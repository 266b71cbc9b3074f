"""How an operator is declared, and the table of all of them.

An operator stands in one place: one call of :func:`operator` in the file of its family. ::

    operator(
        "mul(Tensor self, Tensor other)",
        "multiply",
        promote="numeric",
        inplace=True,
        out=True,
        derivatives={
            "self": lambda g, other: g * conj(other),
            "other": lambda g, self: g * conj(self),
        },
        doc="Multiply elementwise.",
        samples=binary(),
        reference="numpy.multiply",
    )

The schema is written as PyTorch writes it. The forward is a function ``forward(xp, *arguments)`` on bare arrays of the
module ``xp``, or the name of a ufunc. A derivative names what it needs as parameters, and what it names is saved:

==================  ====================================================================
parameter           value
==================  ====================================================================
``g``               the incoming gradient (a list of them when the operator has several)
an argument         that argument; a tensor is saved, with its version
``result``          the operator's output, saved
``NAME_shape``      the shape of the argument NAME
``NAME_dtype``      the NumPy dtype of the argument NAME
``NAME_strides``    the strides, in elements, of the argument NAME
``NAME_offset``     the offset in its storage, in elements, of the argument NAME
an ``aux`` name     what the forward returned beside its result
``needs``           which tensor arguments want a gradient
``F``               the operators: on bare arrays, or recorded, as the caller needs
==================  ====================================================================

The same line runs on bare arrays and, under ``create_graph``, on tensors: it may use arithmetic operators, ``.shape``,
indexing, and the functions of ``F``. A gradient may have the broadcast shape, or a wider dtype: the engine reduces and
casts it to what the input was.

What the operator computes is held against its ``reference``, somebody else's function of host arrays in double
precision, on its ``samples`` and at its ``extremes`` (0, -0, denormal, huge, inf, NaN, ties, empty, degenerate). Where
the two differ for a reason, ``differs`` says where and why; a difference that is none any more fails its test.

Where PyTorch keeps a function in a module of its own, the name says so, as in PyTorch's schemas: ``special_i0e`` is
``gradscope.special.i0e``, and neither a function of the package nor a method. An alias names the module with a dot:
``alias=("special.gammaln",)``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy

from ...dispatch import METHODS, OPERATORS, PUBLIC
from ...graph.graph_node import Node
from ...kernels.elementwise import LARGE, in_parts
from ...kernels.threads import sharing
from ...tensor.overrides import is_overridable, overridable
from ..execution import codegen, general
from ..execution.bare_functions import ARRAY_FORMS, keeping_channels_last, writable_copy
from ..execution.codegen.docstrings import with_neighbours
from .extremes import elementwise, substituted
from .keywords import as_function, as_method
from .samples import Samples

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor
    from .annotations import Argument, Array, Formula, Gradient, Namespace, Results

__all__ = [
    "METHODS",
    "NAMESPACES",
    "OPERATORS",
    "PUBLIC",
    "Operator",
    "Parameter",
    "not_implemented",
    "operator",
    "public",
]

# The families of which every operator treats each element alone.
_BY_ELEMENT = frozenset({"arithmetic", "binary", "fused_arithmetic", "logic", "unary"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an operator's schema."""

    name: str
    type: str
    default: str | None = None
    keyword_only: bool = False

    @property
    def is_tensor(self) -> bool:
        """Whether it takes a tensor (or an optional one)."""
        return self.type in ("Tensor", "Tensor?")

    @property
    def is_tensor_list(self) -> bool:
        """Whether it takes a list of tensors."""
        return self.type == "Tensor[]"


@dataclass(eq=False)
class Operator:
    """An operator, as declared, and what was derived from it."""

    name: str
    schema: str
    parameters: tuple[Parameter, ...]
    forward: Formula | str
    derivatives: dict[str, Formula]
    joint: Formula | None
    joint_for: tuple[str, ...] | None
    promote: str | None
    outputs: tuple[str, ...]
    graded: int
    output_list: bool
    aux: tuple[str, ...]
    view: str | None
    reads: str | None
    inplace: bool
    inplace_node: str | None
    expanded: str | None
    numbers: str | None
    out: bool | str
    method: str | None
    alias: tuple[str, ...]
    node_name: str
    doc: str
    samples: Samples | None
    reference: Formula | str | None
    extremes: Samples | None
    differs: tuple[tuple[Formula, str], ...]
    supports: str
    plain: str | None
    images: int
    family: str
    write: Formula | None
    older: tuple[tuple[Parameter, ...], ...]
    function: Callable[..., Any] = field(init=False)
    # The compiled form that general.watched() calls while somebody listens; it returns None off the common path.
    observed: Callable[..., Any] = field(init=False)
    inplace_function: Callable[..., Any] | None = field(init=False, default=None)
    node_class: type[Node] | None = field(init=False, default=None)
    inplace_node_class: type[Node] | None = field(init=False, default=None)
    ufunc: Formula | None = field(init=False, default=None)

    @cached_property
    def tensors(self) -> tuple[Parameter, ...]:
        """The parameters that take tensors or lists of them."""
        return tuple(p for p in self.parameters if p.is_tensor or p.is_tensor_list)

    @cached_property
    def tensor_places(self) -> tuple[tuple[int, Parameter], ...]:
        """The same, with their places among the arguments."""
        return tuple((i, p) for i, p in enumerate(self.parameters) if p.is_tensor or p.is_tensor_list)

    @cached_property
    def edged(self) -> tuple[Parameter, ...]:
        """The tensor parameters that its node has an edge for: those that have a derivative."""
        if self.joint is not None and self.joint_for is None:
            return self.tensors
        return tuple(p for p in self.tensors if p.name in (self.joint_for or self.derivatives))

    @cached_property
    def casts_into_out(self) -> bool:
        """Whether ``out=`` may have another dtype than the result."""
        return self.out in ("castable", "apart") or (self.out is True and self.promote is not None)

    @cached_property
    def differentiable(self) -> bool:
        """Whether it has a derivative."""
        return bool(self.derivatives) or self.joint is not None

    @cached_property
    def by_element(self) -> bool:
        """Whether an element of its result is computed of those at its place alone: threads may share the work."""
        several = len(self.outputs) > 1 or self.output_list or self.aux
        alone = self.family.rpartition(".")[2] in _BY_ELEMENT or self.name.startswith("clamp")
        return alone and not several and self.view is None

    @cached_property
    def multi(self) -> bool:
        """Whether its node receives a list of gradients."""
        return self.output_list or len(self.outputs) > 1

    @cached_property
    def draws(self) -> bool:
        """Whether its forward draws random numbers, and so must not run a second time for one call."""
        return self.family.endswith((".random", ".random_distributions"))

    @cached_property
    def result_type(self) -> Callable[..., Results]:
        """The named tuple that it returns when it has several outputs."""
        return general.return_type(self)

    def graded_outputs(self, outputs: list[Tensor]) -> list[Tensor]:
        """Return those of its outputs that are differentiable."""
        return outputs if self.output_list else outputs[: self.graded]

    def needed_by(self, formula: Formula) -> tuple[str, ...]:
        """Return the parameter names of a derivative formula."""
        code = getattr(formula, "__code__", None)
        if code is None:
            return tuple(inspect.signature(formula).parameters)
        return code.co_varnames[: code.co_argcount]

    def run_forward(self, xp: Namespace, *arguments: Any) -> Results:
        """Run the forward on bare arrays of module `xp`."""
        function, given = self.forward, (xp, *arguments)
        if isinstance(function, str):
            function, given = getattr(xp, function), arguments
        if sharing and self.by_element and xp is numpy and getattr(arguments[0], "size", 0) >= LARGE:
            return in_parts(function, *given)
        return function(*given)

    def call(self, arguments: tuple[Argument, ...]) -> Results:
        """Call it step by step, without asking modes and subclasses: :func:`.general.run`."""
        return general.run(self, arguments)

    def __repr__(self) -> str:
        return f"<Operator {self.schema}>"


# What is public in modules of their own: ``gradscope.special`` and ``gradscope.linalg`` hold just this.
NAMESPACES: dict[str, dict[str, Callable[..., Any]]] = {"linalg": {}, "special": {}}

_SCHEMA = re.compile(r"^(?P<name>[\w.]+)\((?P<arguments>.*)\)$", re.DOTALL)
_ARGUMENT = re.compile(r"^(?P<type>[\w\[\]?]+)\s+(?P<name>\w+)(?:\s*=\s*(?P<default>.+))?$")


def parse_schema(schema: str) -> tuple[str, tuple[Parameter, ...]]:
    """Return name and parameters of a schema such as ``"sum(Tensor self, int[]? dim=None, *, dtype? dtype=None)"``."""
    match = _SCHEMA.match(schema)
    if match is None:
        raise ValueError(f"malformed schema {schema!r}\nWrite it as name(type argument=default, ...).")
    parameters, keyword_only = [], False
    for text in filter(None, (part.strip() for part in re.split(r",(?![^()\[]*[)\]])", match["arguments"]))):
        if text == "*":
            keyword_only = True
            continue
        argument = _ARGUMENT.match(text)
        if argument is None:
            raise ValueError(f"malformed argument {text!r} in schema {schema!r}")
        parameters.append(Parameter(argument["name"], argument["type"], argument["default"], keyword_only))
    return match["name"], tuple(parameters)


def camel(name: str) -> str:
    """Return ``'LogSoftmax'`` for ``'log_softmax'``, ``'Log1P'`` for ``'log1p'``."""
    return "".join(part.title() for part in name.split("_"))


def in_namespace(name: str) -> tuple[str, str] | None:
    """Return ``("special", "i0e")`` for ``special_i0e`` or ``special.i0e``; None for what is in no such module."""
    space, _, rest = name.replace(".", "_", 1).partition("_")
    return (space, rest) if space in NAMESPACES else None


def operator(
    schema: str,
    forward: Formula | str | None = None,
    *,
    write: Formula | None = None,
    derivatives: dict[str, Formula] | None = None,
    joint: Formula | None = None,
    joint_for: tuple[str, ...] | None = None,
    promote: str | None = None,
    outputs: tuple[str, ...] = ("result",),
    graded: int = 1,
    output_list: bool = False,
    aux: tuple[str, ...] = (),
    view: str | None = None,
    reads: str | None = None,
    inplace: bool = False,
    inplace_node: str | None = None,
    expanded: str | None = None,
    out: bool | str = False,
    method: str | bool | None = True,
    alias: tuple[str, ...] = (),
    numbers: str | None = "second",
    node: str | None = None,
    public_name: str | bool | None = True,
    doc: str = "",
    samples: Samples | None = None,
    reference: Formula | str | None = None,
    extremes: Samples | None = None,
    differs: tuple[tuple[Formula, str], ...] = (),
    supports: str = "fc",
    plain: str | None = None,
    images: int = 0,
    older: tuple[str, ...] = (),
) -> Operator:
    """Declare an operator and derive all that follows from it.

    Parameters
    ----------
    schema : str
        ``"name(type argument=default, ...)"``; a name with a dot (``sum.dim``) is an overload that some public
        function calls and is not public itself.
    forward : callable or str
        ``forward(xp, *arguments)`` on bare arrays, or the name of a ufunc.
    write : callable
        ``write(xp, *arguments)`` writes the result into the first array; it checks everything before it writes. The
        in-place form is then that, and the forward, unless given, a copy and that.
    derivatives : dict
        The vector-Jacobian product for each differentiable argument, see the module's text.
    joint : callable
        One formula for all tensor arguments at once, where they share work; returns a tuple.
    joint_for : tuple of str
        The arguments that it is for, in order, where that is not all tensors: the node has edges for these.
    promote : {None, "numeric", "float", "compare", "bool"}
        How dtypes of the arguments are brought together: PyTorch's promotion, the same and integers to the default
        float dtype, promotion with a bool result, and no promotion with a bool result.
    outputs : tuple of str
        Names of the outputs when there are several.
    graded : int
        How many of the outputs, from the first, are differentiable.
    output_list : bool
        The forward returns a list of arrays, all differentiable.
    aux : tuple of str
        Names of what the forward returns after its result, for the derivative only.
    view : {None, "always", "maybe", "multi"}
        Whether the result shares memory with the first argument. Its forward gets that memory as it lies there.
    reads : {None, "conj", "neg", "dtype"}
        How a view reads the memory otherwise than its argument does: conjugated, negated, or as another dtype.
    inplace : bool
        Whether there is ``name_``. The in-place form of a view gives the tensor itself the new shape and strides.
    out : {False, True, "castable", "apart", "exact"}
        Whether there is an ``out=`` argument. It may be one of the arguments, and has the dtype of the result; or one
        that this can be cast to, where dtypes are brought together or it is ``"castable"``. ``"apart"`` is for
        operators whose ``out=`` shares no memory with their arguments, ``"exact"`` where it also is of the dtype of the
        result.
    inplace_node : str
        Name of the node class of the in-place form, where it is not that of the operator.
    expanded : {None, "allowed", "deprecated"}
        Whether the in-place form may write a tensor of which several elements lie at one address, or warns.
    method : str or bool
        The name of the Tensor method; True for the operator's own, False for none.
    alias : tuple of str
        Further public names.
    numbers : {"second", "either", None}
        Which of two tensors, whose dtypes are brought together, may be a number instead: one that has no dtype.
    node : str
        Name of the node class; ``<Name>Backward0`` unless given.
    doc : str
        First line of the docstring and, if wanted, more.
    samples : callable
        ``samples(make) -> list of (args, kwargs)`` for the tests every operator must pass; ``make(*shape, **domain)``
        makes a tensor.
    reference : str or callable
        What it is held against: the dotted name of a function of SciPy, NumPy or mpmath (one number at a time), or
        ``reference(*arguments)`` on host arrays, written out where no library has the function.
    extremes : callable
        ``extremes(make) -> list of (args, kwargs)``, as for `samples`. An elementwise operator whose arguments are
        tensors alone has those of ``extremes.elementwise`` unless others are given, any other one its samples with
        extreme numbers in place of theirs (``extremes.substituted``).
    differs : tuple of (where, why)
        Where it differs from its reference, as ``where(*arguments) -> mask`` on host arrays, and the reason.
    supports : str
        Kinds of dtypes it is differentiable for: ``"f"`` or ``"fc"``.
    plain : str
        The ufunc that is the forward when all options have their defaults.
    images : int
        How many of the first arguments are images (or kernels for them) whose layout the result follows: it has its
        channels last where one of them has, as in PyTorch.
    older : tuple of str
        Schemas of former overloads, with numbers between the tensors, which it takes too and warns.
    """
    name, parameters = parse_schema(schema)
    base = name.partition(".")[0]
    frame = inspect.currentframe()
    family = frame.f_back.f_globals["__name__"] if frame is not None and frame.f_back is not None else __name__
    if images and callable(forward):
        forward = keeping_channels_last(forward, images)
    op = Operator(
        name=name,
        schema=schema,
        parameters=parameters,
        forward=_copying(write) if forward is None else forward,
        derivatives=derivatives or {},
        joint=joint,
        joint_for=joint_for,
        promote=promote,
        outputs=outputs,
        graded=graded,
        output_list=output_list,
        aux=aux,
        view=view,
        reads=reads,
        inplace=inplace,
        inplace_node=inplace_node,
        expanded=expanded,
        numbers=numbers,
        out=out,
        method=(base if method is True else method) or None if in_namespace(base) is None else None,
        alias=alias,
        node_name=node or camel(base) + "Backward0",
        doc=doc,
        samples=samples,
        reference=reference,
        extremes=extremes or _default_extremes(promote, parameters, samples),
        differs=differs,
        supports=supports,
        plain=plain,
        images=images,
        family=family,
        write=write,
        older=tuple(parse_schema(overload)[1] for overload in older),
    )
    codegen.build(op)
    OPERATORS[name] = op
    if "." not in name and public_name:
        _publish(op)
    return op


def _default_extremes(
    promote: str | None, parameters: tuple[Parameter, ...], samples: Samples | None
) -> Samples | None:
    """Return every point for an elementwise operator of tensors alone, else the samples with extreme numbers."""
    if promote is not None and all(p.is_tensor for p in parameters):
        return elementwise(len(parameters))
    return None if samples is None else substituted(samples)


def not_implemented(name: str, *arguments: str) -> dict[str, Formula]:
    """Return the derivatives of an operator that has none, in PyTorch neither: backward through it raises."""

    def refuse(g: Gradient) -> Gradient:
        raise RuntimeError(f"derivative for aten::{name} is not implemented\nCut the graph there: use detach().")

    return dict.fromkeys(arguments, refuse)


def _copying(write: Formula | None) -> Formula:
    """Return the forward that writes into a copy of its first argument."""
    if write is None:
        raise ValueError("an operator needs a forward or a write\nGive operator() one of them.")

    def forward(xp: Namespace, self: Array, *arguments: Any) -> Array:
        result = writable_copy(xp, self)
        write(xp, result, *arguments)
        return result

    return forward


def _publish(op: Operator) -> None:
    # Those without dimensions are the quickest, and are published as they are.
    along = any(p.name == "dim" for p in op.parameters)
    function, method = (as_function(op.function), as_method(op.function)) if along else (op.function, op.function)
    inplace = op.inplace_function and as_method(op.inplace_function)
    for public_name in (op.name, *op.alias):
        if _publish_in_namespace(public_name, function):
            continue
        PUBLIC[public_name] = function
        if op.method:
            METHODS[public_name if public_name != op.name else op.method] = method
        if inplace is not None:
            PUBLIC[public_name + "_"] = inplace
            if op.method:
                METHODS[public_name + "_"] = inplace


def _composite(body: Callable[..., Any]) -> Callable[..., Any]:
    """Return a composite as a function that is overridden itself; one that chooses an overload is by the overload."""
    function = as_function(body)
    if is_overridable(function) or body.__name__ in OPERATORS or f"{body.__name__}.self" in OPERATORS:
        return function
    return overridable(function)


def _publish_in_namespace(public_name: str, function: Callable[..., Any]) -> bool:
    place = in_namespace(public_name)
    if place is not None:
        NAMESPACES[place[0]][place[1]] = function
    return place is not None


def public(
    function: Callable[..., Any] | None = None,
    *,
    method: bool | str = True,
    function_too: bool = True,
    namespace: str | None = None,
    alias: tuple[str, ...] = (),
    arrays: Formula | None = None,
) -> Callable[..., Any]:
    """Make a composite function public: a function of the package and, by default, a Tensor method of its name.

    For functions written in terms of operators, and for those that choose between overloads. `namespace` is the module
    that it belongs to instead, such as ``linalg``; `alias` are further names, such as ``special.softmax``. `arrays` is
    its form ``arrays(xp, *arguments)`` on bare arrays, for derivatives that use it through ``F``.
    """

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        if arrays is not None:
            ARRAY_FORMS[body.__name__] = arrays
        body.__doc__ = with_neighbours(body.__name__, body.__doc__ or "", namespace)
        if namespace is not None:
            NAMESPACES[namespace][body.__name__] = _composite(body)
            return body
        if isinstance(method, str) and not function_too:
            body.__name__ = method  # which is what __torch_function__ is told
        function = _composite(body)
        if function_too:
            PUBLIC[body.__name__] = function
        for name in alias:
            if not _publish_in_namespace(name, function):
                PUBLIC[name] = function
        if method:
            METHODS[body.__name__ if method is True else method] = as_method(body)
        return body

    return register if function is None else register(function)
