"""Where gradscope differs from PyTorch's database of operators, with the reasons.

The test holds this table to be exact: an entry that differs in an aspect stands here, and an aspect that stands here
differs. A line is ``entry: aspect, aspect``; the aspects are those of :mod:`tests.differential.operator_database`. What
differs in samples alone that the test does not run stands apart, and is held by that module's ``--all``.
"""

from __future__ import annotations

__all__ = ["CANNOT_APPLY", "LEFT_OUT", "LEFT_OUT_OF_ALL", "aspects_left_out"]

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
    "PyTorch leaves open which of several equal elements is named.": """
        kthvalue: dtypes
        topk: dtypes
        mode: dtypes
        sort: dtypes
        argsort: dtypes
    """,
    "PyTorch overflows in float16; this is computed in float32 and rounded once.": """
        matrix_exp: dtypes
        nn.functional.soft_margin_loss: dtypes
    """,
    "PyTorch places the samples in bfloat16; here positions are computed in float32.": """
        nn.functional.grid_sample: dtypes
        grid_sampler_2d: dtypes
        grid_sampler_3d: dtypes
    """,
    "PyTorch's second gradient at zero is NaN; this is that of the subgradient.": """
        linalg.norm.subgradients_at_zero: second gradients, complex
    """,
    "PyTorch has no gradient by the window; this is it.": """
        istft: gradients, complex
    """,
    "PyTorch resizes a tensor that would be broadcast; here it is refused, as by its relatives.": """
        addbmm: in place
    """,
    "There is no complex number of half precision.": """
        chalf: missing
        view_as_complex: dtypes
        complex: dtypes
    """,
    "PyTorch reports an assertion of its own; here it is an IndexError.": """
        narrow_copy: error 1
    """,
    "Called as a function, a reflected operator looks at its second operand alone.": """
        __radd__: error 0, error 1
        __rmul__: error 0, error 1
        __rand__: error 0, error 1
        __ror__: error 0, error 1
        __rxor__: error 0, error 1
        __rdiv__: error 0, error 1
    """,
    "Its checksum is of uint64, a dtype that gradscope does not have.": """
        hash_tensor: missing
    """,
    "PyTorch has seven digits of it only; SciPy's has fifteen.": """
        special.bessel_j0: values, out
        special.bessel_j1: values, out
        special.bessel_y1: values, out
    """,
    "It asks for a sparse tensor.": """
        signal.windows.hamming: error 1
        signal.windows.hann: error 1
        signal.windows.bartlett: error 1
        signal.windows.blackman: error 1
        signal.windows.cosine: error 1
        signal.windows.exponential: error 1
        signal.windows.gaussian: error 1
        signal.windows.kaiser: error 1
        signal.windows.general_cosine: error 1
        signal.windows.general_hamming: error 1
        signal.windows.nuttall: error 1
    """,
    "It asks for the device meta, which has no values.": """
        gradient: error 3, error 10, error 17
    """,
    "Scores are computed at once; there are no options to do it in chunks.": """
        nn.functional.linear_cross_entropy.chunked: values, dtypes
        nn.functional.linear_cross_entropy.chunked_none: values, dtypes
    """,
}

# What differs in samples that the test leaves out: a reason, and lines.
LEFT_OUT_OF_ALL = {
    "PyTorch does not write into `out` where there is a single dimension.": """
        fft.ihfft2: out
        fft.ihfftn: out
    """,
    "PyTorch's second gradient of the norm of no elements is NaN; this is 0.": """
        linalg.norm: second gradients, complex
    """,
    "Without degrees of freedom both divide by zero; which parts are NaN is left to rounding.": """
        cov: complex
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


def aspects_left_out(*, all_samples: bool = False) -> dict[str, dict[str, str]]:
    """Return for each entry that differs from PyTorch the aspects in which it does, with the reasons.

    They are those of the samples that the test runs, or of `all_samples`.
    """
    cannot = {entry: {"missing": reason} for reason, entries in CANNOT_APPLY.items() for entry in entries.split()}
    return cannot | _lines(LEFT_OUT | LEFT_OUT_OF_ALL if all_samples else LEFT_OUT)
