"""Where gradscope differs from PyTorch's database of operators, with the reasons.

The test holds this table to be exact: an entry that differs in an aspect stands here, and an aspect that stands here
differs. A line is ``entry: aspect, aspect``; the aspects are those of :mod:`tests.differential.operator_database`.
"""

from __future__ import annotations

__all__ = ["CANNOT_APPLY", "LEFT_OUT", "aspects_left_out"]

# Entries that cannot apply: a reason, and their names.
CANNOT_APPLY = {
    "Sparse tensors, which gradscope does not have.": """
        sparse.sampled_addmm sparse.mm.reduce to_sparse
    """,
    "Functions compiled for a CUDA device from C++ text.": """
        jiterator_unary jiterator_binary jiterator_4inputs_with_extra_args jiterator_binary_return_by_ref
        jiterator_2inputs_2outputs
    """,
    "Private to PyTorch: a name with an underscore, or `torch.ops.aten` alone.": """
        _softmax_backward_data _native_batch_norm_legit _batch_norm_with_update torch.ops.aten._safe_softmax.default
        slice _unsafe_masked_index _unsafe_masked_index_put_accumulate _chunk_cat native_dropout_backward
        _upsample_bilinear2d_aa max_pool2d_with_indices_backward
    """,
    "Kernels for CUDA devices: PyTorch's own entry takes nothing on the CPU.": """
        torch.ops.aten._flash_attention_forward torch.ops.aten._efficient_attention_forward
        nn.functional.batch_norm.without_cudnn
    """,
    "Products of 8-bit floating-point numbers.": """
        torch._scaled_mm torch._scaled_mm_v2
    """,
}

# The others: a reason, and lines.
LEFT_OUT = {
    "PyTorch's gradient keeps what was written over and drops what was kept; this is the derivative.": """
        as_strided_scatter: gradients, complex
    """,
    "It is not there.": """
        native_group_norm: missing
        native_layer_norm: missing
        native_batch_norm: missing
        chalf: missing
        hash_tensor: missing
        _segment_reduce.lengths: missing
        _segment_reduce.offsets: missing
    """,
    "PyTorch has seven digits of it only; SciPy's has fifteen.": """
        special.bessel_j0: values, out
        special.bessel_j1: values, out
        special.bessel_y1: values, out
    """,
    "It asks for sparse tensors or bfloat16.": """
        signal.windows.hamming: error 1, error 3
        signal.windows.hann: error 1, error 3
        signal.windows.bartlett: error 1, error 3
        signal.windows.blackman: error 1, error 3
        signal.windows.cosine: error 1, error 3
        signal.windows.exponential: error 1, error 3
        signal.windows.gaussian: error 1, error 3
        signal.windows.kaiser: error 1, error 3
        signal.windows.general_cosine: error 1, error 3
        signal.windows.general_hamming: error 1, error 3
        signal.windows.nuttall: error 1, error 3
    """,
    "It is an approximation by other random numbers.": """
        svd_lowrank: values, complex, dtypes
    """,
    "It asks for the device meta, which has no values.": """
        gradient: error 3, error 10, error 17
    """,
    "Scores are computed at once; there are no options to do it in chunks.": """
        nn.functional.linear_cross_entropy.chunked: values, dtypes
        nn.functional.linear_cross_entropy.chunked_none: values, dtypes
    """,
    "It differs.": """
        addbmm: dtypes, in place
        atan2: error 0
        broadcast_shapes: values
        view_as_complex: dtypes
        complex: dtypes, error 2
        cov: second gradients, complex, error 3, error 7, error 8
        diff: values, complex, error 0
        fmax: error 0
        fmin: error 0
        istft: gradients, complex
        isin: out
        kthvalue: dtypes, error 0
        logaddexp: error 0
        masked_fill: error 2
        masked_select: error 1, error 2
        matrix_exp: dtypes
        quantile: gradients
        nanquantile: gradients
        maximum: error 0
        minimum: error 0
        logical_and: error 0
        logical_or: error 0
        logical_xor: error 0
        lcm: error 0
        gcd: error 0
        aminmax: error 3
        nn.functional.cosine_similarity: values
        nn.functional.adaptive_avg_pool2d: error 0
        nn.functional.adaptive_avg_pool3d: error 0
        nn.functional.adaptive_max_pool2d: error 0
        nn.functional.adaptive_max_pool3d: error 0
        nn.functional.avg_pool3d: out
        nn.functional.conv_transpose2d: gradients, complex
        nn.functional.conv_transpose3d: gradients, complex
        nn.functional.conv1d: error 0, error 1
        nn.functional.conv2d: error 0, error 1, error 5
        nn.functional.conv3d: error 0, error 1, error 5
        nn.functional.group_norm: values
        nn.functional.soft_margin_loss: dtypes
        nn.functional.avg_pool2d: values, out
        nn.functional.linear: out
        nn.functional.prelu: error 2
        nn.functional.scaled_dot_product_attention: values
        nn.functional.logsigmoid: out
        nextafter: error 0
        topk: dtypes
        nn.functional.batch_norm: values
        nn.functional.softshrink: out
        nn.functional.gelu: out
        mode: dtypes
        narrow: error 8
        narrow_copy: error 1
        ormqr: gradients, complex
        roll: error 0
        __radd__: error 0, error 1
        __rdiv__: error 0, error 1
        __rmul__: error 0, error 1
        __rand__: error 0, error 1
        __ror__: error 0, error 1
        __rxor__: error 0, error 1
        unravel_index: dtypes
        gather: values, complex, error 1, error 6
        index_fill: gradients, complex, in place
        sort: dtypes
        take: error 1
        multinomial: error 2
        normal.number_mean: values
        hypot: error 0
        searchsorted: values
        cat: error 6, error 7
        movedim: error 0, error 1
        take_along_dim: values, complex, dtypes, out
        tensordot: values, complex, dtypes, out
        nonzero: out
        nn.functional.embedding: error 0
        nn.functional.multi_head_attention_forward: values, dtypes
        nn.functional.softplus: out
        mean: error 1
        argsort: dtypes
        linalg.det: complex
        linalg.lstsq: out
        linalg.norm.subgradients_at_zero: second gradients, complex
        linalg.vander: values, complex, dtypes
    """,
}


def _lines(table: dict[str, str]) -> dict[str, dict[str, str]]:
    """Return for each entry its aspects with their reasons."""
    found: dict[str, dict[str, str]] = {}
    for reason, lines in table.items():
        for line in filter(None, map(str.strip, lines.splitlines())):
            entry, _, aspects = line.partition(": ")
            found.setdefault(entry, {}).update(dict.fromkeys(aspects.split(", "), reason))
    return found


def aspects_left_out() -> dict[str, dict[str, str]]:
    """Return for each entry that differs from PyTorch the aspects in which it does, with the reasons."""
    cannot = {entry: {"missing": reason} for reason, entries in CANNOT_APPLY.items() for entry in entries.split()}
    return cannot | _lines(LEFT_OUT)
