"""Imports every family of operators, in an order in which later ones may build on earlier ones, completes Tensor."""

from __future__ import annotations

from importlib import import_module

from .. import dispatch
from ..engine.backward import backward, backward_scalar
from ..engine.gradient_validation import wrap
from ..engine.graph_task import run_node_alone
from ..tensor import creation
from ..tensor.tensor import Tensor
from ..tensor.views import edge_of
from .declaration.registry import METHODS, NAMESPACES, OPERATORS, PUBLIC
from .execution.general import instrument
from .execution.inplace_and_out import refuse_out, store_out
from .random import random, random_distributions
from .shape.resize_and_set import resize_storage

__all__ = ["FAMILIES", "METHODS", "NAMESPACES", "OPERATORS", "PUBLIC"]

# The modules that declare operators.
FAMILIES = (
    "pointwise.arithmetic",
    "pointwise.unary",
    "pointwise.binary",
    "pointwise.logic",
    "pointwise.python_operators",
    "shape.reshape",
    "shape.as_strided",
    "shape.slice_and_cat",
    "pointwise.complex_numbers",
    "shape.copy_and_cast",
    "shape.resize_and_set",
    "index.indexing",
    "index.gather_and_scatter",
    "index.scatter_reduce",
    "index.take_and_put",
    "pointwise.where_and_clamp",
    "pointwise.fused_arithmetic",
    "pointwise.equality",
    "reduce.reductions",
    "shape.flip_and_repeat",
    "shape.view_copies",
    "reduce.variance_and_norm",
    "reduce.sort_and_cumulate",
    "reduce.quantiles",
    "reduce.searchsorted",
    "reduce.histograms",
    "linalg.matmul",
    "linalg.cholesky_and_triangular",
    "linalg.lu",
    "linalg.ldl",
    "linalg.determinant_and_inverse",
    "linalg.qr",
    "linalg.svd_and_eigen",
    "linalg.svd_lowrank",
    "linalg.pinv_and_lstsq",
    "linalg.matrix_exponential",
    "linalg.matrix_norms",
    "linalg.matrix_products",
    "linalg.older_names",
    "signal.fft",
    "shape.stack_and_split",
    "reduce.diff_and_trapezoid",
    "linalg.einsum",
    "special.error_function",
    "special.bessel",
    "special.normal_integrals",
    "special.gamma",
    "special.orthogonal_polynomials",
    "nn.activations",
    "losses.elementwise_losses",
    "losses.cross_entropy",
    "losses.distances",
    "losses.margin_losses",
    "losses.ctc_loss",
    "nn.convolution",
    "vision.padding",
    "nn.pooling",
    "nn.adaptive_pooling",
    "nn.unpooling",
    "vision.pixel_shuffle_and_unfold",
    "vision.interpolate",
    "nn.normalization",
    "nn.recurrent",
    "nn.packed_sequence",
    "nn.instance_norm",
    "vision.grid_sample",
    "nn.rrelu_and_alpha_dropout",
    "nn.embedding",
    "shape.tensor_information",
    "nn.older_functional_forms",
    "signal.stft",
)

for _family in FAMILIES:
    import_module(f".{_family}", __package__)

for _module in (creation, random, random_distributions):
    for _name in _module.__all__:
        PUBLIC.setdefault(_name, getattr(_module, _name))

dispatch.fill(
    Tensor,
    (
        edge_of,
        backward,
        backward_scalar,
        run_node_alone,
        wrap,
        instrument,
        refuse_out,
        store_out,
        resize_storage,
    ),
)
