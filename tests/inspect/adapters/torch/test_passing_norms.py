"""The norms of what nodes are given while a program runs free, and what they make that is not finite."""

import math

import pytest

from gradscope.inspect.adapters import adapter_for

torch = pytest.importorskip("torch")

from gradscope.inspect.adapters.torch import passing_norms  # noqa: E402 - PyTorch is there

pytestmark = pytest.mark.torch


@pytest.fixture
def look():
    return adapter_for(torch.ones(())).passing_norms()


@pytest.fixture
def reads(monkeypatch):
    """Count the arrays that are read."""
    arrays = []
    norm_of_row = passing_norms.quick_norm_of_row
    monkeypatch.setattr(passing_norms, "quick_norm_of_row", lambda row: arrays.append(row.size) or norm_of_row(row))
    return arrays


def grad(*shape):
    return torch.arange(1.0, 1 + math.prod(shape)).reshape(shape)


def test_a_small_gradient_keeps_its_norm_when_a_large_one_is_made_beside_it(look):
    small, large = torch.tensor([3.0, 4.0]), torch.ones(100, 100)
    look([large], [small, large])
    assert look([small], []) == (5.0, True)
    assert look([large], []) == (pytest.approx(100.0), True)


HANDED_ON = {
    "itself": lambda g: g,
    "view": lambda g: g.view(-1),
    "transposed": lambda g: g.t(),
    "permuted": lambda g: g.view(2, 5, 20).permute(2, 0, 1),
    "detached": lambda g: g.detach(),
}


@pytest.mark.parametrize("how", HANDED_ON)
def test_what_a_node_hands_on_is_read_once(look, reads, how):
    given = grad(10, 20)
    norm = float(given.norm())
    made = HANDED_ON[how](given)
    assert look([given], [made, made]) == (pytest.approx(norm), True)
    assert look([made], []) == (pytest.approx(norm), True)
    assert reads == [200]


def test_other_numbers_of_the_same_memory_are_read(look):
    memory = grad(200)
    memory[150] = math.nan
    memory[1] = math.inf
    part, spread = memory[2:102], memory[::2][:75]
    assert look([part], [memory]) == (pytest.approx(float(part.norm())), False)
    assert look([spread], [memory[:75]]) == (pytest.approx(float(spread.norm())), False)
    assert look([memory[:100].clone()[2:]], [memory.as_strided((98,), (1,), 0)])[1] is False


def test_memory_that_was_used_before_is_read_anew(look):
    given, made = grad(300), grad(300)
    look([given], [made])
    address, numbers = made.data_ptr(), made.numpy()
    again = torch.from_numpy(numbers)  # another tensor, whose version is the same, at the same place
    del made
    numbers[7] = math.nan
    assert again.data_ptr() == address
    assert look([given], [again]) == (pytest.approx(float(given.norm())), False)


def test_what_is_written_meanwhile_has_another_norm(look):
    given = grad(10, 20)
    made = given.t()
    look([given], [made])
    made.mul_(2)
    assert look([made], [])[0] == pytest.approx(float(made.norm()))
    assert look([given], [given.t()])[0] == pytest.approx(float(given.norm()))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("count", [1, 16, 17, 20_000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64])
def test_a_single_number_that_is_not_finite_is_seen(look, bad, count, dtype):
    given = torch.ones(count, dtype=dtype)
    made = given.clone()
    made[-1] = bad
    assert look([given], [made])[1] is False
    assert look([given], [given, made])[1] is False
    assert look([made], [made])[1] is True, "it had arrived"


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_gradients_of_any_kind_have_their_norm(look):
    dense = grad(4, 6)
    kinds = {
        "sparse": dense.to_sparse(),
        "csr": dense.to_sparse_csr(),
        "expanded": torch.ones(1, 30).expand(5, 30),
        "negated": torch.complex(dense, -dense).conj().imag,
        "inference": torch.inference_mode()(lambda: grad(4, 6))(),
        "nested": torch.nested.nested_tensor([torch.ones(30), torch.ones(10)]),
        "of nothing": torch.ones(0, 4),
        "leaf": grad(4, 6).requires_grad_(),
        "half": dense.half(),
    }
    of_dense = float(dense.norm())
    expected = {"expanded": math.sqrt(150), "nested": math.sqrt(40), "of nothing": 0.0}
    for kind, tensor in kinds.items():
        assert look([tensor], [tensor]) == (pytest.approx(expected.get(kind, of_dense)), True), kind
    assert look([None], [None]) == (None, True)
    assert look([dense, None, dense], [])[0] == pytest.approx(of_dense * math.sqrt(2))
