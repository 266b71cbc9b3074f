"""What every operator must pass, driven by the registry: a new declaration is tested without a line here.

Each check is a function of an operator; ``CHECKS`` says to which operators it applies. ``pytest -k mul-gradcheck`` runs
one check of one operator.
"""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.autograd.gradcheck import gradcheck, gradgradcheck
from gradscope.runtime.errors import SavedTensorModifiedError
from gradscope.runtime.graph.graph_node import Node
from gradscope.runtime.graph.saved_tensors import RELEASED
from gradscope.runtime.memory.storage import is_viewable
from gradscope.runtime.ops.declaration.registry import METHODS, OPERATORS, PUBLIC, Operator
from gradscope.runtime.ops.execution import general
from gradscope.runtime.ops.execution.saving import saved_by
from gradscope.runtime.tensor.math_bits import resolve_bits
from gradscope.runtime.tensor.tensor import Tensor
from tests.other_devices import OTHER_DEVICES
from tests.runtime.ops import operator_cases as cases

# --- values -----------------------------------------------------------------------------------------------------------


def compare_with_torch(
    op: Operator, torch: Any, kind: str, rtol: float, atol: float, arguments: Callable[..., Any] = cases.samples
) -> None:
    """Values, gradients, dtypes and node names are PyTorch's."""
    function = cases.own(op, cases.counterpart(torch, op))
    for number, sample in enumerate(arguments(op, kind)):
        theirs = tuple(cases.to_torch(torch, part) for part in sample)
        if arguments is cases.extremes and both_refuse(op, function, sample, theirs):
            continue
        outputs = cases.call(op, sample)
        expected = function(*theirs[0], **theirs[1])
        expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
        what = f"{op.name}, sample {number} ({kind})"
        assert len(outputs) == len(expected), what
        for index, (output, other) in enumerate(zip(outputs, expected, strict=True)):
            cases.same(cases.host(output), cases.host(other), f"{what}, output {index}", rtol=rtol, atol=atol)
            if op.differentiable:
                assert output.requires_grad == other.requires_grad, f"{what}, output {index} requires grad"
            if output.grad_fn is not None and op.name not in cases.OTHER_NAMES:
                assert cases.node_name(output) == cases.node_name(other), what
                assert len(output.grad_fn._input_metadata) == len(other.grad_fn._input_metadata), what
        if not any(o.requires_grad for o in outputs):
            continue
        seeds = [torch.from_numpy(cases.host(seed)) for seed in cases.seeds_for(outputs)]
        ends = [o for o in expected if o.requires_grad]
        wanted = torch.autograd.grad(ends, cases.torch_leaves(theirs), seeds, allow_unused=True)
        for index, (found, other) in enumerate(zip(cases.gradients(outputs, sample), wanted, strict=True)):
            cases.same(cases.host(found), cases.host(other), f"{what}, gradient {index}", rtol=rtol, atol=atol)


def both_refuse(op: Operator, function: Callable[..., Any], sample: Any, theirs: Any) -> bool:
    """Whether a sample is refused; PyTorch must refuse it too, with an exception of the same class."""
    ours = refusal(lambda: cases.call(op, sample))
    others = refusal(lambda: function(*theirs[0], **theirs[1]))
    assert ours == others, f"{op.name}: {ours} instead of {others}"
    return ours is not None


def refusal(function: Callable[[], Any]) -> str | None:
    """Return the class of the exception that a function raises, None where it returns."""
    try:
        function()
    except RuntimeError as error:
        return type(error).__name__.lstrip("_")
    return None


def check_torch(op: Operator, torch: Any) -> None:
    compare_with_torch(op, torch, "float64", 1e-7, 1e-9)


def check_torch_extremes(op: Operator, torch: Any) -> None:
    """At its extremes too, where a NaN that PyTorch does not make is a wrong answer."""
    compare_with_torch(op, torch, "float64", 1e-7, 1e-300, cases.extremes)


def check_torch_float32(op: Operator, torch: Any) -> None:
    compare_with_torch(op, torch, "float32", 2e-4, 2e-5)


def check_torch_complex(op: Operator, torch: Any) -> None:
    compare_with_torch(op, torch, "complex128", 1e-8, 1e-9)


def check_torch_inplace(op: Operator, torch: Any) -> None:
    """The node of an in-place write has PyTorch's name."""
    method = op.name.partition(".")[0] + "_"
    for (self, *rest), kwargs in cases.samples(op)[:1]:
        theirs = cases.to_torch(torch, self).clone()
        getattr(torch.ops.aten, method)(theirs, *cases.to_torch(torch, rest), **cases.to_torch(torch, kwargs))
        target = self.clone()
        op.inplace_function(target, *rest, **kwargs)
        assert cases.node_name(target) == cases.node_name(theirs)
        assert target._version == theirs._version


def check_float32(op: Operator) -> None:
    """A float32 result is the float64 result, rounded; so are the gradients."""
    for single, double in zip(cases.samples(op, "float32"), cases.samples(op), strict=True):
        found, expected = cases.call(op, single), cases.call(op, double)
        for a, b in zip(found, expected, strict=True):
            if a.dtype in (gs.float32, gs.complex64):
                cases.same(cases.host(a), cases.host(b).astype(a.dtype.numpy), op.name, rtol=1e-3, atol=1e-4)
        if any(o.requires_grad for o in found):
            pairs = zip(cases.gradients(found, single), cases.gradients(expected, double), strict=True)
            for a, b in pairs:
                wanted = None if b is None else cases.host(b).astype(a.dtype.numpy)
                cases.same(cases.host(a), wanted, f"{op.name} gradient", rtol=1e-3, atol=1e-4)


def check_mixed(op: Operator) -> None:
    """An operand of a narrower dtype gives the values and gradients that the same numbers in float64 give."""
    for sample in cases.samples(op):
        operands = cases.differentiable(sample)
        for operand, kind in itertools.product(operands if len(operands) > 1 else (), ("uint8", "int8", "float16")):
            numbers = (operand.detach() * (1 if kind == "float16" else 30)).abs().to(getattr(gs, kind))
            wide, narrow = (cases.replaced(sample, operand, n) for n in (numbers.double(), numbers))
            expected, found = cases.call(op, wide), cases.call(op, narrow)
            if any(output.dtype != gs.float64 for output in found):
                continue  # the other operands have fewer dimensions, and no say
            for a, b in zip(found, expected, strict=True):
                cases.same(cases.host(a), cases.host(b), f"{op.name} of {kind}", rtol=1e-7)
            pairs = zip(cases.gradients(found, narrow), cases.gradients(expected, wide), strict=True)
            for a, b in pairs:
                cases.same(cases.host(a), cases.host(b), f"{op.name} gradient beside {kind}", rtol=1e-7)


def check_layouts(op: Operator) -> None:
    """Non-contiguous inputs give the same values and gradients."""
    for sample in cases.samples(op):
        other = tuple(cases.convert(part, cases.relaid) for part in sample)
        if not viewable(op, other):
            with pytest.raises(RuntimeError, match="stride"):
                cases.call(op, other)
            continue
        found = cases.call(op, other)
        expected = cases.call(op, sample)
        for a, b in zip(found, expected, strict=True):
            if op.name not in LAYOUT_DEPENDENT:
                cases.same(cases.host(a), cases.host(b), op.name)
        if any(o.requires_grad for o in found) and op.name not in LAYOUT_DEPENDENT:
            for a, b in zip(cases.gradients(found, other), cases.gradients(expected, sample), strict=True):
                cases.same(cases.host(a), cases.host(b), f"{op.name} gradient")


def viewable(op: Operator, sample: Any) -> bool:
    """Whether the strides of a sample allow the view that `op` would make; view() and view_as_complex() may refuse."""
    tensor = sample[0][0]
    if op.name == "view_as_complex":
        return tensor.stride(-1) == 1
    if op.name not in ("view.size", "view_copy.size", "reshape_alias") or not tensor.numel():
        return True
    return is_viewable(tensor._array, cases.sizes(sample[0][1], tensor.numel()))


# Their result follows the strides of their argument, by definition.
LAYOUT_DEPENDENT = ("as_strided.size", "as_strided_copy", "as_strided_scatter")


# --- gradients --------------------------------------------------------------------------------------------------------


def closed_over(op: Operator, sample: Any) -> tuple[Callable[..., Any], list[Tensor]]:
    """Return the operator as a function of the sample's tensors that require grad."""
    inputs = cases.differentiable(sample)

    def function(*values: Tensor) -> Any:
        given = dict(zip(map(id, inputs), values, strict=True))
        args, kwargs = (cases.convert(part, lambda t: given.get(id(t), t)) for part in sample)
        result = cases.own(op, op.function)(*args, **kwargs)
        return result if isinstance(result, Tensor) else tuple(result)

    return function, inputs


# How many samples have the gradient that calculus says; in the others it is another by design (rows of
# padding, scores that a log_softmax made).
NOT_A_DERIVATIVE = {"ctc_loss.examples": 0, "embedding_rows": 1}


def check_gradcheck(op: Operator, kind: str = "float64", limit: int | None = None) -> None:
    for sample in cases.samples(op, kind)[: NOT_A_DERIVATIVE.get(op.name, limit)]:
        function, inputs = closed_over(op, sample)
        assert gradcheck(function, inputs)


def check_gradgradcheck(
    op: Operator, kind: str = "float64", limit: int | None = None, *, fast_mode: bool = True
) -> None:
    """Compare second derivatives along a random direction, or one by one."""
    for sample in cases.samples(op, kind)[:limit]:
        function, inputs = closed_over(op, sample)
        assert gradgradcheck(function, inputs, fast_mode=fast_mode)


def check_complex(op: Operator, *, fast_mode: bool = True) -> None:
    check_gradcheck(op, "complex128", 3)
    check_gradgradcheck(op, "complex128", 2, fast_mode=fast_mode)


def check_create_graph(op: Operator) -> None:
    """Backward on tensors, recorded, gives what backward on bare arrays gives."""
    for sample in cases.samples(op):
        plain = cases.gradients(cases.call(op, sample), sample)
        recorded = cases.gradients(cases.call(op, sample), sample, create_graph=True)
        for a, b in zip(recorded, plain, strict=True):
            cases.same(cases.host(a), cases.host(b), op.name)


def check_inputs_untouched(op: Operator) -> None:
    """Forward and backward write no input, and a result shares no memory with one unless it is a view."""
    for sample in cases.samples(op):
        inputs = list(cases.leaves(list(sample)))
        before = [cases.host(t) for t in inputs]
        outputs = cases.call(op, sample)
        if any(o.requires_grad for o in outputs):
            seeds = [cases.host(seed) for seed in cases.seeds_for(outputs)]
            grads = cases.gradients(outputs, sample)
            for seed, again in zip(seeds, cases.seeds_for(outputs), strict=True):
                numpy.testing.assert_array_equal(seed, cases.host(again))
            assert all(
                g is None or g._array.shape == t._array.shape for g, t in zip(grads, cases.differentiable(sample))
            )
        for tensor, values in zip(inputs, before, strict=True):
            numpy.testing.assert_array_equal(tensor._array, values)
            assert tensor._version == 0
        for output in outputs:
            shared = any(numpy.shares_memory(output._memory, t._memory) for t in inputs)
            if op.name in SHARING:
                continue
            if op.view is None:
                assert not shared, f"{op.name} returned memory of its input"
            elif op.view != "maybe":
                assert shared or not output.numel(), f"{op.name} is declared a view, but copied"
                assert output._is_view()


# It gives the memory of a fresh array to its result, which is no view of it.
SHARING = ("unsafe_view", "unsafe_split", "unsafe_split_with_sizes")


# --- versions ---------------------------------------------------------------------------------------------------------


def saved_inputs(op: Operator) -> list[str]:
    """Return the names of the tensors an operator's node saves, with a version."""
    return list(op.node_class.versioned_names) if op.node_class is not None else []


def check_saved(op: Operator) -> None:
    """A saved tensor written after forward makes backward raise, and the error says which."""
    for name in saved_inputs(op):
        seen = False
        for number in range(len(cases.samples(op))):
            sample = cases.samples(op)[number]
            outputs = cases.call_itself(op, sample)
            node = outputs[0].grad_fn
            entries = [s for s in node.saved_tensors_info() if s.name == name and s.current_version is not None]
            if not entries:
                continue
            seen = True
            entry = entries[0]
            assert entry.saved_version == entry.current_version == 0
            written = outputs[entry._value().nr] if entry.is_output else getattr(node, "s_" + name)
            written = written[0] if isinstance(written, list) else written
            written.detach().copy_(written.detach().clone())
            with pytest.raises(SavedTensorModifiedError, match="modified by an inplace operation") as caught:
                cases.gradients(outputs, sample)
            error = caught.value
            assert (error.node, error.saved_name, error.operator) == (node, name, op.node_name)
            assert (error.saved_version, error.current_version) == (0, 1)
            assert (error.shape, error.dtype) == (tuple(written.shape), written.dtype)
            assert (error.producer == op.node_name) == entry.is_output
        assert seen, f"no sample of {op.name} saves {name}: add one"


def check_released(op: Operator) -> None:
    """A node lets go of what it saved once it has run, and a second backward says so."""
    sample = cases.samples(op)[0]
    outputs = cases.call(op, sample)
    node = outputs[0].grad_fn
    cases.gradients(outputs, sample)
    for name in saved_inputs(op):
        assert getattr(node, "s_" + name) is RELEASED
    if saved_inputs(op):
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            cases.gradients(outputs, sample)


# --- in-place and out= ------------------------------------------------------------------------------------------------


def check_inplace(op: Operator) -> None:
    """The in-place form gives the same values and gradients, writes the same memory and counts one write."""
    assert op.inplace_function is not None
    fitting = 0
    for (self, *rest), kwargs in cases.samples(op):
        expected = op.function(self, *rest, **kwargs)
        if op.view is None and (expected.shape != self.shape or expected.dtype.category > self.dtype.category):
            with pytest.raises(RuntimeError, match=r"doesn't match the broadcast shape|can't be cast"):
                op.inplace_function(self.clone(), *rest, **kwargs)
            continue
        fitting += 1
        target = self.clone()
        address = target.data_ptr()
        result = op.inplace_function(target, *rest, **kwargs)
        assert result is target
        assert target.data_ptr() == address or op.name in LAYOUT_DEPENDENT
        assert target._dtype == target._array.dtype
        assert target._version == 1
        cases.same(cases.host(target), cases.host(expected.to(self.dtype)), op.name)
        if expected.requires_grad:
            assert target.grad_fn.name() == op.inplace_node_class.node_name
            sample = ((self, *rest), kwargs)
            pairs = zip(cases.gradients([target], sample), cases.gradients([expected], sample), strict=True)
            for a, b in pairs:
                cases.same(cases.host(a), cases.host(b), f"{op.name}_ gradient")
        if self.requires_grad and op.differentiable:  # what has no derivative may write a leaf, as in PyTorch
            with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place"):
                op.inplace_function(self, *rest, **kwargs)
            assert self._version == 0
    assert fitting, f"no sample of {op.name} has an in-place form: add one"


def check_out(op: Operator) -> None:
    """``out=`` receives the result, resized where its shape differs, and refuses to be differentiated."""
    for args, kwargs in cases.samples(op):
        expected = cases.call_itself(op, (args, kwargs))
        several = op.multi
        with gs.no_grad():
            for resized in (False, True):
                out = [gs.zeros(0 if resized else tuple(e.shape), dtype=e.dtype) for e in expected]
                found = op.function(*args, **kwargs, out=tuple(out) if several else out[0])
                for a, b, c in zip(found if several else [found], out, expected, strict=True):
                    assert a is b
                    cases.same(cases.host(a), cases.host(c), op.name)
                    assert a._version == 1
        if expected[0].requires_grad:
            out = [gs.zeros(tuple(e.shape), dtype=e.dtype) for e in expected]
            with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
                op.function(*args, **kwargs, out=tuple(out) if several else out[0])


# --- the conjugate and the negative bit -------------------------------------------------------------------------------

# They refuse a tensor with a bit, or read memory by what the operator is given beside it.
REFUSING_BITS = ("view_as_real", "view.dtype")


def with_bits(op: Operator) -> list[tuple[cases.Sample, cases.Sample]]:
    """Return samples, and the same with tensors that are read conjugated (complex ones) or negated (real ones)."""
    kinds = ["float64", "complex128"] if cases.has_derivative(op) and "c" in op.supports else ["float64"]
    samples = [sample for kind in kinds for sample in cases.samples(op, kind)]
    return [(sample, tuple(cases.convert(part, cases.lazy) for part in sample)) for sample in samples]


def check_math_bits(op: Operator) -> None:
    """A tensor that is read conjugated or negated is to every operator what its elements are."""
    for plain, lazy in with_bits(op):
        expected, found = cases.call(op, plain), cases.call(op, lazy)
        for a, b in zip(found, expected, strict=True):
            cases.same(cases.host(a), cases.host(b), op.name)
            if op.view is None and op.name not in cases.REGULAR_FORMS:
                assert (a.is_conj(), a.is_neg()) == (False, False)
                assert a._memory.flags.writeable or 0 in a._memory.strides, f"{op.name} returned read-only memory"
            elif op.view is not None and a.numel():
                assert any(numpy.shares_memory(a._memory, t._memory) for t in cases.leaves(list(lazy)))
        if not any(o.requires_grad for o in found):
            continue
        wanted = cases.gradients(expected, plain)
        for create_graph in (True, False):
            gradients = cases.gradients(cases.call(op, lazy), lazy, create_graph=create_graph)
            for a, b in zip(gradients, wanted, strict=True):
                cases.same(cases.host(a), cases.host(b), f"{op.name} gradient")


def lazy_twin(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """Return a recorded function of `tensor` with other elements, and a view of it with the same elements again."""
    turn = gs.conj_physical if tensor.is_complex() else gs.neg
    base = turn(tensor.clone())
    return base, base.conj() if tensor.is_complex() else base._neg_view()


def check_math_bits_inplace(op: Operator) -> None:
    """An in-place form writes through a conjugate (a negative), and gradients follow the write."""
    assert op.inplace_function is not None
    for plain, _ in with_bits(op):
        (self, *rest), kwargs = plain
        if self._dtype.kind not in "fc":
            continue
        expected = op.function(self, *rest, **kwargs)
        if op.view is None and (expected.shape != self.shape or expected.dtype.category != self.dtype.category):
            continue
        base, target = lazy_twin(self)
        bits = (target.is_conj(), target.is_neg())
        assert op.inplace_function(target, *rest, **kwargs) is target
        assert (target.is_conj(), target.is_neg()) == bits
        assert base._version == target._version == 1
        cases.same(cases.host(target), cases.host(expected.to(self.dtype)), f"{op.name}_")
        if op.view is None:
            cases.same(resolve_bits(base._array, *bits), cases.host(target), f"{op.name}_ in memory")
        if expected.requires_grad:
            pairs = zip(cases.gradients([target], plain), cases.gradients([expected], plain), strict=True)
            for a, b in pairs:
                cases.same(cases.host(a), cases.host(b), f"{op.name}_ gradient")


def check_math_bits_out(op: Operator) -> None:
    """``out=`` writes through a conjugate (a negative)."""
    for plain, lazy in with_bits(op):
        expected = cases.call_itself(op, plain)
        if any(e._dtype.kind not in "fc" for e in expected):
            continue
        with gs.no_grad():
            bases, views = zip(*(lazy_twin(gs.zeros(tuple(e.shape), dtype=e.dtype)) for e in expected), strict=True)
            op.function(*lazy[0], **lazy[1], out=views if op.multi else views[0])
        for base, view, e in zip(bases, views, expected, strict=True):
            cases.same(cases.host(view), cases.host(e), op.name)
            cases.same(resolve_bits(base._array, view.is_conj(), view.is_neg()), cases.host(e), op.name)


# --- devices ----------------------------------------------------------------------------------------------------------


def check_device(op: Operator) -> None:
    """Forward, backward and backward under create_graph run on other devices, with NumPy's results."""
    for device, sample in itertools.product(OTHER_DEVICES, cases.samples(op)):
        other = tuple(cases.convert(part, partial(cases.moved, to=device)) for part in sample)
        found, expected = cases.call(op, other), cases.call(op, sample)
        for a, b in zip(found, expected, strict=True):
            assert a.device.type == device
            cases.same(cases.host(a), cases.host(b), op.name)
        if not any(o.requires_grad for o in found):
            continue
        wanted = cases.gradients(expected, sample)
        for create_graph in (True, False):
            outputs = cases.call(op, other)
            for a, b in zip(cases.gradients(outputs, other, create_graph=create_graph), wanted, strict=True):
                assert a is None or a.device.type == device
                cases.same(cases.host(a), cases.host(b), f"{op.name} gradient")


# Operators whose gradients at their extremes are others than PyTorch's, and why.
OTHER_AT_EXTREMES = {
    "celu": "PyTorch keeps 1 / alpha in single precision",
    "lerp.Tensor": "PyTorch multiplies and adds in one step, which does not overflow between",
    "addcmul": "PyTorch multiplies and adds in one step, which does not overflow between",
    "remainder.tensor": "of a denormal divisor PyTorch's is NaN",
    "fmod.tensor": "of a denormal divisor PyTorch's is NaN",
    "hypot": "PyTorch rounds the product of gradient and denormal first",
    "logaddexp2": "where the result is 0 PyTorch's is the rounding of a logarithm",
    "gcd": "of the least integer PyTorch's is negative",
    "lcm": "the least integer ends PyTorch's process by SIGFPE",
    "special_log_ndtr": "far below 0 PyTorch's gradient leaves its asymptote, and ends as NaN",
    "frexp": "PyTorch raises 2 to the exponents in float32, which has no power above 2**127",
    "digamma": "PyTorch's derivative at a pole is finite",
    "special_i1": "PyTorch's derivative at NaN is 1/2",
    "special_i1e": "PyTorch's derivative at NaN is 1/2",
    "linalg_ldl_factor_ex": "where a matrix has a NaN, MKL and OpenBLAS choose other pivots",
    "igamma": "PyTorch's of a NaN is 0 or 1 in places",
    "igammac": "PyTorch's of a NaN is 0 or 1 in places",
    "special_zeta": "PyTorch's at infinity is NaN, the sum 0",
    "special_chebyshev_polynomial_t": "PyTorch's is not 0 where a cosine is",
    "special_chebyshev_polynomial_u": "PyTorch's is not 0 where a sine is",
    "polygamma.order": "PyTorch's at a negative pole is finite, and at infinity NaN",
    "kl_div": "PyTorch rounds the product of gradient and denormal first, and subtracts products that overflow",
    "ctc_loss.examples": "a NaN of one class stays out of classes that no label of the example names",
    "linalg_svd": "zeros in vectors are rounding; of infinities PyTorch's is 0 beside NaN, or without convergence",
    "linalg_eigh": "MKL refuses some of the matrices with infinities, whose eigenvalues are NaN",
    "linalg_eig": "beside huge numbers, eigenvalues and vectors near 0 are rounding",
    "linalg_general_eigenvalues": "PyTorch gives infinities and NaN to LAPACK, where eig() refuses them",
    "addmm": "PyTorch scales a factor of each product, which may overflow, not their sum",
    "addbmm": "products that overflow are added in another order",
    "linalg_qr": "MKL takes -0.0 for 0.0, and puts infinities and NaN elsewhere than OpenBLAS",
    "geqrf": "MKL takes -0.0 for 0.0, and puts infinities and NaN elsewhere than OpenBLAS",
    "ormqr": "MKL and OpenBLAS differ in where infinities, NaN and quotients by denormal numbers go",
    "_fft_r2c": "PyTorch scales by the norm after the sums, which may have overflowed",
    "grid_sampler_2d": "a sum that cancels is added in another order",
    "grid_sampler_3d": "a sum that cancels is added in another order",
    "affine_grid_generator": "a sum that cancels is added in another order",
    "linalg_cholesky_ex": "MKL and OpenBLAS differ in where infinities, NaN and quotients by denormal numbers go",
    "cholesky_inverse": "MKL and OpenBLAS differ in where infinities, NaN and quotients by denormal numbers go",
    "linalg_lu_parts": "MKL and OpenBLAS differ in where infinities, NaN and quotients by denormal numbers go",
    "linalg_lu_factor_ex": "MKL and OpenBLAS differ in where infinities, NaN and quotients by denormal numbers go",
    "linalg_lu_solve": "MKL and OpenBLAS differ in where infinities, NaN and quotients by denormal numbers go",
    "det": "PyTorch's gradient has the inverse in it, which overflows elsewhere than products of singular values",
    "inverse": "MKL and OpenBLAS differ in where infinities, NaN and quotients by denormal numbers go",
    "linalg_solve": "MKL and OpenBLAS differ in where infinities, NaN and quotients by denormal numbers go",
    "linalg_slogdet": "where the logarithm is NaN PyTorch's sign is 0, and its inverse is MKL's",
    "linalg_cross": "PyTorch multiplies and subtracts in one step, which does not overflow between",
    "linalg_matrix_exp": "of huge numbers the squarings leave no digit: PyTorch's is NaN",
    "linalg_inv_ex": "MKL and OpenBLAS differ in where infinities, NaN and quotients by denormal numbers go",
    "linalg_solve_ex": "MKL and OpenBLAS differ in where infinities, NaN and quotients by denormal numbers go",
    "linalg_pinv": "a sum that cancels is added in another order, and of a matrix with infinities PyTorch's is 0",
    "linalg_lstsq": "beside huge numbers the rank is a driver's rounding; of infinities gelsy's varies",
    "logcumsumexp": "PyTorch adds the logarithm of the gradient to a number that dwarfs it",
    "topk": "of equal elements PyTorch takes those that its partition comes upon",
    "kthvalue": "of equal elements PyTorch takes the one that its partition comes upon",
    "upsample_linear1d_backward": "PyTorch passes infinities through taps of weight 0, as NaN",
    "upsample_bilinear2d": "a sum that cancels is added in another order",
    "upsample_bilinear2d_backward": "PyTorch passes infinities through taps of weight 0, as NaN",
    "upsample_trilinear3d": "a sum that cancels is added in another order",
    "upsample_trilinear3d_backward": "PyTorch passes infinities through taps of weight 0, as NaN",
    "upsample_bicubic2d": "a sum of huge numbers overflows in another order",
    "upsample_bicubic2d_backward": "PyTorch passes infinities through taps of weight 0, as NaN",
    "_upsample_bilinear2d_aa": "a sum that cancels is added in another order",
    "_upsample_bilinear2d_aa_backward": "PyTorch passes infinities through taps of weight 0, as NaN",
    "_upsample_bicubic2d_aa": "a sum of huge numbers overflows in another order",
    "_upsample_bicubic2d_aa_backward": "PyTorch passes infinities through taps of weight 0, as NaN",
    "_upsample_lanczos2d_aa": "a sum of huge numbers overflows in another order",
}

# --- the table of checks ----------------------------------------------------------------------------------------------

CHECKS: dict[str, tuple[Callable[..., None], Callable[[Operator], Any]]] = {
    "torch": (check_torch, cases.has_counterpart),
    "torch_float32": (check_torch_float32, cases.has_counterpart),
    "torch_extremes": (
        check_torch_extremes,
        lambda op: op.extremes is not None and cases.has_counterpart(op) and op.name not in OTHER_AT_EXTREMES,
    ),
    "torch_complex": (
        check_torch_complex,
        lambda op: (
            cases.has_derivative(op)
            and "c" in op.supports
            and cases.has_counterpart(op)
            and op.name not in cases.NO_COMPLEX_DERIVATIVES
        ),
    ),
    "torch_inplace": (
        check_torch_inplace,
        lambda op: op.inplace_function and cases.has_derivative(op) and op.name not in cases.OTHER_ARGUMENTS,
    ),
    "float32": (check_float32, lambda op: True),
    "mixed": (check_mixed, lambda op: op.promote and cases.has_derivative(op)),
    "layouts": (check_layouts, lambda op: True),
    "gradcheck": (check_gradcheck, cases.has_derivative),
    "gradgradcheck": (check_gradgradcheck, cases.has_derivative),
    "complex": (check_complex, lambda op: cases.has_derivative(op) and "c" in op.supports),
    "create_graph": (check_create_graph, cases.has_derivative),
    "inputs_untouched": (check_inputs_untouched, lambda op: True),
    "saved": (check_saved, saved_inputs),
    "released": (check_released, cases.has_derivative),
    "inplace": (check_inplace, lambda op: op.inplace_function is not None),
    "out": (check_out, lambda op: op.out),
    "math_bits": (check_math_bits, lambda op: op.name not in REFUSING_BITS),
    "math_bits_inplace": (check_math_bits_inplace, lambda op: op.inplace_function is not None),
    "math_bits_out": (check_math_bits_out, lambda op: op.out),
    "device": (check_device, lambda op: op.name not in cases.NOT_IN_CUPY),
}
# What draws random numbers has tests of its own; transfer() needs two devices: tests/runtime/memory/test_device.py.
REPEATABLE = [op for op in OPERATORS.values() if not op.draws and op.name != "transfer"]
LEFT_TO_SLOW = {"complex", "device", "gradgradcheck", "math_bits", "math_bits_inplace", "math_bits_out"}


def checks_of(op: Operator) -> Iterator[Any]:
    """Yield the checks that an operator must pass: the quick ones of its own, those beside PyTorch, each long one."""
    apply = [check for check, (_, applies) in CHECKS.items() if applies(op)]
    long = [check for check in apply if check in LEFT_TO_SLOW]
    torch = [check for check in apply if check.startswith("torch")]
    own = [check for check in apply if check not in long and check not in torch]
    if torch:
        yield pytest.param(op, torch, id=f"{op.name}-torch", marks=pytest.mark.torch)
    yield pytest.param(op, own, id=op.name)
    for check in long:
        yield pytest.param(op, [check], id=f"{op.name}-{check}", marks=pytest.mark.slow)


SAMPLED = [op for op in OPERATORS.values() if op.samples is not None]


@pytest.mark.parametrize(("op", "checks"), [case for op in SAMPLED for case in checks_of(op)])
def test_operator(op: Operator, checks: list[str], request: pytest.FixtureRequest) -> None:
    beside = [request.getfixturevalue("torch")] if checks[0].startswith("torch") else []
    for check in checks:
        with warnings.catch_warnings(), numpy.errstate(all="ignore"):
            if beside:
                warnings.simplefilter("ignore")
            try:
                CHECKS[check][0](op, *beside)
            except Exception as error:
                error.add_note(f"It was the check {check!r}.")
                raise


SECOND = {"gradgradcheck": check_gradgradcheck, "complex": check_complex}


@pytest.mark.slow
@pytest.mark.parametrize("check", SECOND)
@pytest.mark.parametrize("op", SAMPLED, ids=lambda op: op.name)
def test_second_derivatives_one_by_one(op: Operator, check: str) -> None:
    if CHECKS[check][1](op):
        with warnings.catch_warnings(), numpy.errstate(all="ignore"):
            SECOND[check](op, fast_mode=False)


@pytest.mark.parametrize("name", [name for name in OTHER_AT_EXTREMES if name != "lcm"])
def test_what_is_said_to_differ_at_extremes_does(name: str, torch: Any) -> None:
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with pytest.raises(AssertionError):
            check_torch_extremes(OPERATORS[name], torch)


# --- the registry as a whole ------------------------------------------------------------------------------------------


def test_every_differentiable_operator_has_samples() -> None:
    missing = sorted(op.name for op in REPEATABLE if cases.has_derivative(op) and op.samples is None)
    assert missing == []


def test_every_operator_with_inplace_or_out_form_has_samples() -> None:
    missing = sorted(op.name for op in REPEATABLE if (op.inplace or op.out) and op.samples is None)
    assert missing == []


def test_elementwise_operators_are_sampled_0d_and_empty() -> None:
    lacking = []
    for op in OPERATORS.values():
        elementwise = op.family.endswith((".arithmetic", ".binary", ".logic", ".unary"))
        if op.samples is None or not elementwise or not op.promote:
            continue
        shapes = {tuple(t.shape) for sample in cases.samples(op) for t in cases.leaves(list(sample))}
        if () not in shapes or not any(0 in shape for shape in shapes):
            lacking.append(op.name)
    assert lacking == []


def test_every_public_function_and_method_has_a_docstring() -> None:
    bare = [n for n, f in PUBLIC.items() if not (inspect.getdoc(f) or "").strip()]
    bare += [
        f"Tensor.{n}" for n, f in METHODS.items() if not n.startswith("__") and not (inspect.getdoc(f) or "").strip()
    ]
    bare += [op.name for op in OPERATORS.values() if not op.doc.strip()]
    assert sorted(set(bare)) == []


def test_node_classes_name_their_saved_tensors() -> None:
    for op in OPERATORS.values():
        if op.node_class is not None:
            for name in saved_by(op):
                assert hasattr(op.node_class, f"_saved_{general.shown_name(op, name)}")
            assert issubclass(op.node_class, Node)
