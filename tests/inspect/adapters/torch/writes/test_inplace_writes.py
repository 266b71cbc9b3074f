"""Which calls may write: those that are held for pure go past the mode that hears of writes."""

import warnings
from itertools import islice

import pytest

torch = pytest.importorskip("torch")

from torch.overrides import TorchFunctionMode  # noqa: E402

from gradscope.inspect.adapters.torch.operator_calls import tensors_in  # noqa: E402
from gradscope.inspect.adapters.torch.writes.inplace_writes import WriteMode, may_write  # noqa: E402

pytestmark = pytest.mark.torch

F = torch.nn.functional
X = torch.ones(3)


@pytest.mark.parametrize(
    "func", [torch.sin, torch.Tensor.mul, torch.Tensor.__rsub__, torch.einsum, F.linear, F.cross_entropy, F.layer_norm]
)
def test_what_writes_nothing_is_known_to(func):
    assert not may_write(func, (X, X), None)
    assert may_write(func, (X, X), {"out": X})


@pytest.mark.parametrize(
    ("func", "args", "kwargs"),
    [
        (torch.sin_, (X,), None),
        (torch.Tensor.__iadd__, (X, X), {}),
        (torch.Tensor.__setitem__, (X, 0, 1.0), None),
        (torch.Tensor.data.__set__, (X, X), None),
        (torch.ops.aten.add_.Tensor, (X, X), {}),
        (F.dropout, (X,), {"inplace": True}),
        (F.dropout, (X, 0.5, True, True), {}),
        (F.batch_norm, (X, X, X), {}),
        (torch.batch_norm, (X,), {}),
        (torch._foreach_add_, ([X], 1), {}),
        (lambda x: x, (X,), {}),
    ],
)
def test_what_writes_or_is_not_known_may_write(func, args, kwargs):
    assert may_write(func, args, kwargs)


class _Calls(TorchFunctionMode):
    """Keeps, of the call that runs, whether it may write and the memory that it is given."""

    def __init__(self):
        super().__init__()
        self.running = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        given = {tensor.untyped_storage()._cdata for tensor in _with_memory((args, kwargs or {}))}
        self.running.append((func, may_write(func, args, kwargs), given))
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.running.pop()


def _with_memory(value):
    return [tensor for tensor in tensors_in(value) if tensor.layout is torch.strided]


@pytest.mark.slow
def test_no_operator_of_pytorchs_database_writes_unheard():
    pytest.importorskip("expecttest")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db

    unheard, calls = set(), _Calls()

    def told(write):
        if calls.running:
            func, heard, given = calls.running[-1]
            if not heard and write.tensor.untyped_storage()._cdata in given:
                unheard.add((func, write.operator))

    def failed(error):
        raise error

    ran = 0
    for operator in op_db:
        dtypes = operator.supported_dtypes("cpu")
        dtype = torch.float32 if torch.float32 in dtypes else next(iter(dtypes), None)
        for form in filter(None, (operator.op, operator.method_variant, operator.inplace_variant)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for sample in islice(operator.sample_inputs("cpu", dtype), 3) if dtype is not None else ():
                    try:
                        with calls, WriteMode(told, failed):
                            form(sample.input, *sample.args, **sample.kwargs)
                    except (AssertionError, RuntimeError, TypeError):  # it is for GPUs, or not for this dtype
                        continue
                    ran += 1
    assert ran > 1000
    assert unheard == set()
