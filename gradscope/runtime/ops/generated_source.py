"""The generated source of an operator: its functions and its node, and a legend of the names in it.

``python -m gradscope.runtime.ops show mul add_`` prints it.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..graph.graph_node import Node
from .declaration.annotations import NodeClass
from .declaration.registry import OPERATORS, PUBLIC, Operator
from .execution.codegen import function_source
from .execution.codegen.inplace import inplace_source
from .execution.codegen.nodes import apply_source

__all__ = ["LEGEND", "UnknownOperatorError", "legend", "listing"]

LEGEND = {
    # What a function is made of.
    "op": "the declaration",
    "forward": "the declared forward, on bare arrays",
    "ufunc": "the declared forward, where it is a NumPy ufunc",
    "plain": "the NumPy function that the forward is where nothing but tensors is given",
    "default_NAME": "the default of the option NAME: where each option is its default, the path is the common one",
    "write": "the declared forward of the in-place form, where it has one of its own",
    "d_NAME": "the declared derivative with respect to NAME",
    "joint": "the declared derivative with respect to all operands at once",
    "Node": "the node's class",
    # The ways out of the common path.
    "general": "runtime/ops/execution/general.py, which runs what is rare, step by step",
    "writes": "runtime/ops/execution/inplace_and_out.py, which runs `out=`",
    "run_older": "runtime/ops/execution/older_overloads.py, which takes numbers between the tensors",
    "older": "what was given by position beyond the operator's own arguments: it is of a former overload then",
    "run_inplace": "runs an in-place call that is not a common one",
    "check_overlap": "raises where a part of the written memory is read",
    "unpack_array": "makes an array of a saved value that is no plain tensor, or has been written: then it raises",
    "sharing": "has the number of threads that share the work on large arrays, where there are several",
    "LARGE": "how many elements a large array has",
    "small": "the shape of the last array that was not a large one",
    "BROAD": "how many elements an array has beside which another may be broadcast by a compiled loop",
    "of_two": "computes a function of two arrays by such a loop, or a part at a time, where that pays",
    "MANY": "how many elements of half precision are computed in single precision",
    "in_layout_of": "gives images their channels last where one of the arguments has them so",
    "in_parts": "computes a function of large arrays a part at a time, on those threads",
    "in_single": "computes a product or another ufunc of arrays of half precision in single precision",
    # Taking tensors apart.
    "input": "the first operand, under the name by which callers know it",
    "x_NAME": "the bare array of operand NAME",
    "f_NAME": "the flags of NAME: 1 it requires grad, 2 it is a view, from 4 on something rare (runtime/state.py)",
    "e_NAME": "the edge of NAME, where its gradient goes: None if nowhere, or if nobody has asked yet",
    "es_NAME": "the edges of a list of tensors",
    "c_NAME": "the version counter of NAME; None for memory at version 0 that nobody shares",
    "sh_NAME": "the shape of NAME",
    "sh": "the shape of the first operand, then of the result",
    "dt": "the dtype of the first operand, then of the result",
    "d": "the dtype of the first operand; d0, d1, ... those of the results",
    "t": "the type of the second operand, which may be a number; one tensor of a list",
    "x": "one of several arrays or gradients",
    "f": "the flags of all operands together",
    "e": "the edges of the node; in a function, the edge of one tensor",
    "edge_of": "returns a tensor's edge, and makes it where it is not there yet",
    # Making the result.
    "r": "what forward has computed; r0, r1, ... where it is several arrays",
    "a": "one array of a list of results",
    "out": "the result; as a keyword, the tensor that it is written into",
    "o": "the list of results; o0, o1, ... where it is no list",
    "nr": "the number of an output",
    "fresh": "gives a blank Tensor at each next()",
    "m_NAME": "what forward has computed beside its results, for the derivative",
    "reread": "makes a view what another reading of its base gives",
    # Recording.
    "n": "the node",
    "s": "the saved result: its array and counter without the tensor, which would be a cycle",
    "c": "a version counter",
    "v": "the version at which it was saved",
    "sequence": "gives the node's number at each next(): the engine runs the last made first",
    "unrecorded": "has an entry for each thread that records nothing: mostly none",
    "modes": "the modes of this thread; `_records` is whether it records",
    "state": "runtime/state.py; `special` is whether anybody listens or a mode is on",
    "Leaf": "AccumulateGrad, the node of a leaf",
    "element_strides": "the strides of an array, in elements",
    "offset_of": "where an array begins in its memory, in elements",
    # The derivative.
    "g": "the gradient that has arrived; a list of them where the operator has several results",
    "a_NAME": "the bare array of what was saved as NAME",
    "F": "the operators by name, on bare arrays",
    "array_operators": "returns F of an array module",
    "NUMPY": "F of NumPy",
    # Arrays, dtypes, classes.
    "numpy": "NumPy",
    "ndarray": "NumPy's array",
    "array_module": "returns the module of an array: NumPy or CuPy",
    "is_array": "whether a value is an array of a known module",
    "Tensor": "the class",
    "new": "object.__new__",
    "VersionCounter": "what memory that is shared or written has: how often it was written",
    "SavedResult": "the class of `s`",
    "BFloat16Array": "the class of arrays that stand for bfloat16",
    "FLOAT32": "that dtype",
    "FLOAT16": "that dtype",
    "FLOATS": "the kinds of dtypes that are computed with as they are: float and complex",
    "INEXACT": "the kinds of dtypes that have gradients",
    "SCALABLE": "the dtypes in which a number may be taken as it is",
    "CONSTANTS32": "numbers as float32 arrays without dimensions, kept for the next call",
    "constant": "makes such an array, of any dtype",
    "common_dtype": "returns the dtype in which two arrays of different ones meet; None for rules of their own",
    "number_dtype": "returns that of integers or bools beside a number",
    "ViewInfo": "the class of what a view knows of its base",
    "p": "what the operand, if it is a view, knows of its base",
    "q": "what the result, a view, knows of its base",
    "k": "the dtype in which the operands meet",
    "error": "what an array module has complained of",
    # Slots.
    "._array": "a tensor's bare array",
    "._memory": "the array that its elements lie in: of a lazy conjugate not the same",
    "._shape": "its shape",
    "._dtype": "its NumPy dtype",
    "._edge": "its edge",
    "._flags": "its flags",
    "._vc": "its version counter",
    "._view": "what a view knows of its base",
    "._meta": "its gradient, hooks and what else few tensors have",
    ".edges": "where the node's gradients go",
    ".seq": "its number",
    ".extra": "its hooks",
    ".outs": "shape and dtype of each of its outputs",
    ".s_NAME": "what the node has saved as NAME",
    ".v_NAME": "the version of that",
}
"""What the names in generated source stand for; NAME is an argument's, a result's or that of something saved.

In functions of several results or with lists a name begins with ``_``, as an argument could be called the same.
"""


class UnknownOperatorError(LookupError):
    """There is no operator of a name."""


def listing(name: str) -> str:
    """Return the source that is generated for an operator.

    Parameters
    ----------
    name : str
        A public name (``"mul"``, ``"multiply"``, ``"mul_"``), which may be that of several operators, or the full name
        of one, ``"sum.dim"``.

    Returns
    -------
    str
        Python: the function and the node's ``apply`` of each operator, with comments.

    Raises
    ------
    UnknownOperatorError
        If there is none, or none with an in-place form where that is asked for.

    Examples
    --------
    >>> print(listing("neg_"))  # doctest: +ELLIPSIS
    # neg_, the in-place form of: neg(Tensor self)
    # declared in gradscope/runtime/ops/pointwise/unary.py
    ...
    """
    found = list(_named(name))
    if not found:
        raise UnknownOperatorError(_unknown(name))
    return "\n".join(_sections(*one) for one in found)


def _named(name: str) -> Iterator[tuple[Operator, bool]]:
    """Yield the operators of a name, and whether it is their in-place form that has it."""
    for op in OPERATORS.values():
        names = {op.name, op.name.partition(".")[0], *op.alias}
        if name in names:
            yield op, False
        elif op.inplace and name in {f"{own}_" for own in names}:
            yield op, True


def _unknown(name: str) -> str:
    composed = getattr(PUBLIC.get(name), "__wrapped__", PUBLIC.get(name))
    if composed is not None and hasattr(composed, "__code__"):
        code = composed.__code__
        return f"{name} is composed of operators: read it at {_shortened(code.co_filename)}:{code.co_firstlineno}"
    known = {spelling for op in OPERATORS.values() for spelling in (op.name, op.name.partition(".")[0], *op.alias)}
    known |= {f"{op.name.partition('.')[0]}_" for op in OPERATORS.values() if op.inplace}
    near = difflib.get_close_matches(name, sorted(known))
    return f"there is no operator {name!r}\n" + (
        f"Near names: {', '.join(near)}." if near else "The families in gradscope/runtime/ops/ declare all that are."
    )


def _shortened(filename: str) -> str:
    """Return a path in the package from the package on."""
    return Path(filename).relative_to(Path(__file__).parents[3]).as_posix()


def _sections(op: Operator, inplace: bool) -> str:
    form = f"{op.name}_, the in-place form of: " if inplace else ""
    head = f"# {form}{op.schema}\n# declared in {op.family.replace('.', '/')}.py\n\n"
    parts = [head + (inplace_source(op, op.name.replace(".", "_") + "_") if inplace else function_source(op))]
    if op.differentiable:
        node: NodeClass = op.inplace_node_class if inplace else op.node_class
        spends = "# spend(n, g), for a backward that keeps no graph, also lets go of the saved tensors.\n"
        head = f"# {node.node_name}\n{_derivatives(op)}{spends if node.spend is not Node.spend else ''}\n"
        parts.append(head + apply_source(op))
    return "\n".join(parts)


def _derivatives(op: Operator) -> str:
    """Return comments that say where each formula of the node is."""
    formulas = {f"d_{name}": formula for name, formula in op.derivatives.items()}
    if op.joint is not None:
        formulas["joint"] = op.joint
    codes = {name: getattr(formula, "__code__", None) for name, formula in formulas.items()}
    return "".join(
        f"# {name}: {_shortened(code.co_filename)}:{code.co_firstlineno}\n" for name, code in codes.items() if code
    )


def legend(source: str) -> str:
    """Return what the names in generated source stand for, a line for each that is in it.

    Examples
    --------
    >>> print(legend("n = Node()"))
    # Node  the node's class
    # n     the node
    """
    used = set(_entries(source))
    width = max(map(len, used), default=0)
    return "\n".join(f"# {entry:{width}}  {meaning}" for entry, meaning in LEGEND.items() if entry in used)


def _entries(source: str) -> Iterable[str]:
    """Yield the entries of the legend for the names in Python source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            yield entry_of(node.id)
        elif isinstance(node, ast.Attribute):
            yield entry_of(f".{node.attr}")
        elif isinstance(node, ast.arg):
            yield entry_of(node.arg)


def entry_of(name: str) -> str:
    """Return the entry of the legend under which a name, or an attribute with its dot, is explained; or the name.

    Examples
    --------
    >>> entry_of("x_self"), entry_of("_r0"), entry_of(".s_other"), entry_of("numpy")
    ('x_NAME', 'r', '.s_NAME', 'numpy')
    """
    for spelling in (name, name.removeprefix("_"), re.sub(r"\d+$", "", name.removeprefix("_"))):
        if spelling in LEGEND:
            return spelling
    pattern = re.sub(r"^(\.?)_?([a-z]+)_.+$", r"\1\2_NAME", name)
    return pattern if pattern in LEGEND else name
