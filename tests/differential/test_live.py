"""Statements chosen by the live state do the same on PyTorch and on gradscope; so do programs that once did not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential import live
from tests.differential.live import DIFFERENCES, Divergence, Side, first_divergence, known, live_program, main, minimise

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

PROGRAMS, PARTS = 1000, 20


@pytest.mark.parametrize("part", range(PARTS))
def test_live_programs_agree(part: int) -> None:
    size = PROGRAMS // PARTS
    for seed in range(part * size, part * size + size):
        _, divergence, watch = live_program(seed)
        if divergence is not None and known(divergence) is None:
            pytest.fail(f"program {seed}\n{minimise(divergence, watch)}")


FOUND = {
    "an operand that is written is packed before": """
        x = torch.tensor([2.0, 3.0], requires_grad=True)
        y = x * 1
        with torch.autograd.graph.saved_tensors_hooks(packed, unpacked):
            y.mul_(y)
        y.sum().backward()
        """,
    "the gradient of a mean is an array of its own": """
        x = torch.tensor([2.0, 3.0], requires_grad=True)
        v1 = torch.autograd.grad(x.mean(), [x])[0]
        v1[[1]] = 5.0
        v1.mul_(2)
        """,
    "an operator without a derivative writes leaves, and out= of what requires grad": """
        x = torch.tensor([0.0, 3.0], requires_grad=True)
        x.logical_not_()
        x.view(2, 1).logical_and_(x)
        torch.gt(x, 0.5, out=x)
        y = torch.zeros(2)
        torch.eq(x * 2, 2.0, out=y)
        """,
    "a reduction is made in the dtype of its out=": """
        x = torch.tensor([True, True, False])
        torch.sum(x, 0, out=torch.zeros((), dtype=torch.bool))
        y = torch.sum(torch.tensor([1.5, 2.0]), 0, out=torch.zeros((), dtype=torch.int32))
        z = torch.prod(torch.tensor([1.5, 2.0]), 0, out=torch.zeros((), dtype=torch.int32))
        u = torch.cumsum(torch.tensor([1.5, 2.0]), 0, out=torch.zeros(2, dtype=torch.int32))
        """,
    "an operand that is out= keeps its shape": """
        x = torch.tensor([1.0, 2.0])
        y = torch.tensor(1.0)
        torch.add(x, y, out=y)
        """,
    "what a Function writes in inference mode stays what it was": """
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        with torch.inference_mode():
            y = Doubled.apply(x)
        """,
    "bools as exponents": """
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x ** True
        z = torch.tensor([True, False])
        z.pow_(True)
        z.pow_(False)
        """,
    "weights of another dtype normalise nothing": """
        x = torch.nn.functional.layer_norm(torch.zeros(2, 3, dtype=torch.float64), (3,), torch.ones(3))
        """,
    "linear layers of no features, of a vector": """
        x = torch.zeros(0, requires_grad=True)
        w = torch.ones(2, 0, requires_grad=True)
        torch.nn.functional.linear(x, w, torch.ones(2, requires_grad=True)).sum().backward()
        u = torch.ones(0, 2, requires_grad=True)
        torch.nn.functional.linear(torch.ones(3, 1, 2), u).sum().backward()
        """,
    "a mask of nothing for something": """
        x = torch.tensor([1.0, 2.0])
        y = x[torch.zeros(0, dtype=torch.bool)]
        x[torch.zeros(0, dtype=torch.bool)] = 1.0
        y = x.reshape(2, 1)[torch.zeros(2, 0, dtype=torch.bool)]
        y = x.reshape(2, 1)[:, torch.zeros(0, dtype=torch.bool)]
        """,
    "a complex number is true where any part of it is not zero": """
        x = torch.tensor([-2j, 0j, 1 + 0j])
        y = torch.zeros(3, dtype=torch.bool)
        y.copy_(x)
        z = torch.zeros(3, dtype=torch.bool)
        z[:] = x
        """,
    "a gradient of another shape than that which is there": """
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        x.sum().backward()
        x.data = torch.zeros(3)
        y = x * 2
        y.sum().backward()
        """,
    "a node that has saved nothing runs again": """
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = torch.fmod(x, torch.tensor([0.75, 0.5]))
        z = torch.remainder(x, torch.tensor([0.75, 0.5]))
        u = torch.addmm(x, torch.ones(2, 2), torch.ones(2, 2))
        (y + z + u.sum(0)).sum().backward()
        y.sum().backward()
        z.sum().backward(create_graph=True)
        u.sum().backward()
        """,
    "a node that has saved its other operand does not": """
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = torch.fmod(torch.ones(2), x)
        y.sum().backward()
        y.sum().backward()
        """,
    "a node that gets no gradient has been released too": """
        x = torch.tensor([2.0, 3.0], requires_grad=True)
        y = torch.tensor([1.0, 2.0], requires_grad=True)
        z = Pair.apply(x, y * y)[0]
        z.sum().backward()
        z.sum().backward()
        z.sum().backward(create_graph=True)
        """,
    "an out= that grows keeps its offset": """
        x = torch.zeros(6)
        x.as_strided_((2,), (1,), 2)
        torch.neg(torch.tensor([1.0, 2.0, 3.0]), out=x)
        """,
    "a saved operand got another shape": """
        x = torch.tensor([[0.0, 3.0, -0.5]], requires_grad=True)
        y = x.amax(dim=1)
        x.data = torch.tensor([1.0])
        y.sum().backward()
        """,
    "the history of a saved tensor was cut off": """
        x = torch.tensor([2.0], requires_grad=True)
        y = x * 3
        z = y * y
        y.detach_()
        u = torch.autograd.grad(z.sum(), [x], create_graph=True)[0]
        """,
    "what was cut off before it was saved": """
        x = torch.tensor([2.0], requires_grad=True)
        y = x * 3
        y.detach_()
        z = y * x
        u = torch.autograd.grad(z.sum(), [x], create_graph=True)[0]
        """,
    "a complex base without a bound, or of zero, to negative powers": """
        x = torch.tensor([complex("inf+1j"), complex("nan-infj"), complex("nan+1j"), 0j, 2j], dtype=torch.complex64)
        y = x ** torch.full((5,), -2.0, dtype=torch.complex64)
        z = x ** torch.full((5,), 0.5 + 1j, dtype=torch.complex64)
        u = torch.zeros(2, dtype=torch.complex64)
        v = u.real
        u.pow_(torch.tensor([-0.5 + 1j, 2 - 1j], dtype=torch.complex64))
        """,
    "a write to what is saved and not needed is found under create_graph": """
        x = torch.tensor([2.0, 3.0], requires_grad=True)
        y = x ** torch.tensor([2.0, 3.0])
        z = y.view(2, 1)
        y.mul_(3)
        z.sum().backward(create_graph=True)
        """,
    "a leaf that was a view is given other memory": """
        x = torch.zeros(4).view(2, 2).requires_grad_()
        y = x * 2
        with torch.no_grad():
            x.set_(torch.zeros(3))
        x.backward(torch.ones(3))
        """,
    "a backward in inference mode records nothing": """
        x = torch.ones(2, 3, requires_grad=True)
        y = x @ torch.ones(3, 2, requires_grad=True)
        with torch.inference_mode():
            y.backward(torch.ones(2, 2), create_graph=True)
        """,
    "a gradient that is retained is a copy under create_graph": """
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x * x
        y.retain_grad()
        z = torch.autograd.grad((y * y).sum(), [y], create_graph=True)[0]
        z.add_(-1.5)
        """,
    "a power's derivative by its exponent is in the dtype of the result": """
        x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
        y = torch.tensor([2, 3], dtype=torch.uint8) ** x
        y.sum().backward()
        """,
    "a gradient that is made of zeros is laid out as its input": """
        x = torch.ones(2, 3, requires_grad=True)
        y = x.t()
        z = torch.autograd.grad(x.sum(), [y], materialize_grads=True)[0]
        u = z.view(6)
        """,
    "index_put_() takes no values of more dimensions than it writes": """
        x = torch.zeros(3)
        x.index_put_((torch.tensor([0, 1]),), torch.ones(1, 2))
        x.index_put_((torch.tensor([True, False, True]),), torch.ones(1, 1), accumulate=True)
        x[[0, 1]] = torch.ones(1, 2)
        """,
    "a view that a Function made without grad mode": """
        x = torch.ones(2, 3, requires_grad=True)
        y = x * 1
        with torch.inference_mode():
            z = Row.apply(y)
        with torch.no_grad():
            u = Row.apply(y)
        v = Row.apply(y)
        y.add_(1)
        """,
    "a view that was given other memory is written": """
        x = torch.tensor([0.75, 1.5, 0.25], requires_grad=True)
        y = x * 1
        z = y[1:]
        z.data = torch.tensor([1.0])
        z.mul_(3)
        z.backward()
        """,
    "a leaf that got another shape keeps its node while a graph holds it": """
        x = torch.ones(2, 3, requires_grad=True)
        y = x * 2
        with torch.no_grad():
            x.unsqueeze_(0)
        z = torch.autograd.grad(y.sum(), [x], allow_unused=True)[0]
        x.data = torch.ones(5)
        u = x * 2
        del y
        del u
        v = torch.autograd.grad((x * 3).sum(), [x])[0]
        """,
    "a leaf that an out= resizes has a node of its shape": """
        x = torch.ones(1, requires_grad=True)
        x.sum().backward()
        x.grad = None
        with torch.no_grad():
            torch.neg(torch.tensor(2.0), out=x)
        y = x.squeeze()
        y.backward()
        """,
    "a gradient with a graph is copied in the shape of the leaf": """
        x = torch.ones(2, 3, requires_grad=True)
        y = x * 2
        x.data = torch.ones(1, 2, 3)
        y.sum().backward(create_graph=True)
        """,
    "index_add() of a source of fewer dimensions": """
        x = torch.ones(2, 3)
        y = x.index_add(1, torch.tensor([0, 1]), torch.ones(2))
        """,
    "an index into a dimension without elements": """
        x = torch.ones(0, 0)
        y = x[:, [0]]
        z = x[torch.zeros(0, dtype=torch.int64)]
        """,
    "index_copy() of a source of fewer dimensions": """
        x = torch.ones(2, 3)
        y = x.index_copy(1, torch.tensor([0, 1]), torch.ones(2))
        z = x.index_copy(1, torch.tensor([0]), torch.tensor(2.0))
        """,
    "lerp() takes a weight of no other dtype": """
        x = torch.tensor([0.5, 1.0], requires_grad=True)
        y = torch.lerp(x, x * 2, torch.tensor([3, 4], dtype=torch.uint8))
        """,
    "what a backward makes in inference mode was made there": """
        x = torch.tensor([2.0, 3.0], requires_grad=True)
        y = x * x
        y.register_hook(note("y"))
        u = y.sum()
        with torch.inference_mode():
            u.backward(retain_graph=True)
            v1 = torch.autograd.grad(u, [x], retain_graph=True)[0]
            u.backward(retain_graph=True)
        v2 = x.grad
        u.backward(retain_graph=True, create_graph=True)
        """,
    "the only root runs its tensor hooks where it leads to no input": """
        x = torch.tensor([2.0, 3.0], requires_grad=True)
        u = torch.tensor([2.0, 3.0], requires_grad=True)
        x.register_hook(note("x"))
        y = x * x
        y.retain_grad()
        y.register_hook(note("y", -0.5))
        y.grad_fn.register_prehook(note_all("pre"))
        y.sum().backward(inputs=[u])
        y.backward(torch.ones(2), inputs=[u])
        torch.autograd.grad(x.unbind()[0], [u], allow_unused=True)
        torch.autograd.grad(x, [u], torch.ones(2), allow_unused=True)
        torch.autograd.backward([y, u * 1], [torch.ones(2), torch.ones(2)], inputs=[u])
        """,
    "the gradient of nothing beside something is nothing without a history": """
        x = torch.zeros(0, requires_grad=True)
        y = torch.ones(2, 3, requires_grad=True)
        v1 = torch.autograd.grad((torch.cat([x, y]) ** 2).sum(), [x], create_graph=True)[0]
        torch.cat([x, x]).sum().backward(create_graph=True)
        """,
    "the gradient of products of nothing is nothing without a history": """
        x = torch.zeros(0, requires_grad=True)
        x.cumprod(-1).mean().backward(create_graph=True)
        """,
    "the norm of a complex number with an infinite part is infinite": """
        x = torch.tensor([complex("nan+infj"), complex("inf+nanj"), 1j])
        y = x.norm()
        z = torch.linalg.vector_norm(x, 2, 0)
        u = torch.tensor([complex("nan+1j"), complex("inf+1j"), 1j]).norm()
        """,
    "a part of a leaf that was used is not written": """
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        x[::2] = x[::2] * 2
        y = x * 1
        y[::2] = y[::2] * 2
        y.sum().backward()
        """,
    "a part of what was saved is written where saved tensors may be": """
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        y = x * 1
        with torch.autograd.graph.allow_mutation_on_saved_tensors():
            z = y * y
            y[0:1] = (x * 5)[0:1]
            z.sum().backward()
        """,
    "an out= that has room for the result keeps its memory": """
        x = torch.arange(6.0).reshape(2, 3)
        y = x.T
        z = x.view(6)[2:]
        torch.neg(torch.tensor([1.0, 2.0]), out=x)
        torch.neg(torch.tensor([[3.0], [5.0]]), out=z)
        torch.neg(torch.zeros(0), out=z)
        """,
}


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND)
@pytest.mark.parametrize("watch", [False, True])
def test_once_different(text: str, watch: bool) -> None:
    divergence = first_divergence(lines_of(text), watch)
    assert divergence is None, str(divergence)


def lines_of(text: str) -> list[str]:
    """Return the statements of an indented text; an indented line belongs to the block before it."""
    lines: list[str] = []
    for line in text.strip("\n").splitlines():
        line = line.removeprefix(" " * 8)
        if line.startswith(" "):
            lines[-1] += f"\n{line}"
        elif line:
            lines.append(line)
    return lines


def test_known_differences_have_names_of_their_own() -> None:
    assert len({difference.name for difference in DIFFERENCES}) == len(DIFFERENCES)
    nothing = Divergence(("x = torch.zeros(2)",), "values of x", [0.0, 0.0], [0.0, 1.0])
    assert known(nothing) is None


@pytest.mark.parametrize(
    ("of", "write"),
    [
        ("v1[0]", "v1[:, 1] = v2"),
        ("v1[0]", "with torch.no_grad():\n    v1[:, 1] = v2"),
        ("v1.view(8)[1:6:4].unsqueeze(0)", "v2[[0, 0], -1] = v2"),
    ],
)
def test_a_write_to_a_part_with_gaps_of_what_is_read_is_known(of: str, write: str) -> None:
    lines = ["v1 = torch.arange(8.0).reshape(2, 2, 2)", f"v2 = {of}", write]
    assert_known(lines, "operands that overlap with gaps")


def test_a_write_to_a_part_without_gaps_is_not_known_by_them() -> None:
    pair = live.Pair(watch=False)
    with live.quiet():
        for line in ("v1 = torch.arange(8.0).reshape(2, 2, 2)", "v2 = torch.zeros(2, 2)", "v1[:, 1] = v2"):
            assert pair.run(line) is None
            assert not pair.overwrites()


def test_a_sum_of_infinite_complex_numbers_is_known() -> None:
    assert_known(["x = torch.tensor([complex('inf+infj')])", "y = x + x"], "products with infinite complex numbers")


KNOWN = {
    "which of two faults is told": """
        v1 = torch.tensor([], dtype=torch.float32).reshape((0,)).requires_grad_()
        v3 = torch.softmax(v1, -1)
        v4 = v3.split(1, -1)[0]
        v3[None] = v3[None].clone() * 2
        v14 = v4.select(0, 0)
        """,
    "einsum() is put together from other operators": """
        v1 = torch.arange(8.0).reshape(2, 2, 2).requires_grad_()
        v2 = (v1 * 1)[1:]
        v3 = torch.einsum('...i,...i->...', v2, v1)
        """,
    "the negative of an unsigned integer": """
        v1 = torch.tensor([0.25], dtype=torch.float64, requires_grad=True)
        v2 = torch.tensor([0, 3, 1, 2], dtype=torch.uint8)
        torch.atan2(v2, v1).sum().backward()
        """,
    "an expanded tensor that has been written": """
        v2 = torch.tensor(3.0, requires_grad=True)
        v6 = v2.clone()
        v8 = v6.expand(2)
        v8.flatten().fill_(0)
        torch.minimum(v8, v2).mean().backward()
        """,
    "a leaf that got another shape while a graph holds its node": """
        v1 = torch.tensor([[1.5], [-2.0]], requires_grad=True)
        v4 = torch.take(v1, torch.tensor([1, 1]))
        with torch.inference_mode():
            torch.abs(v1, out=v4)
        v12 = v4.expand(2, 2)
        v15 = torch.autograd.grad((v12 * v12).sum(), [v4])[0]
        """,
    "integers of a view that may not be used any more": """
        v1 = torch.tensor([1, -2, 1, 3, 0, 2], dtype=torch.int32).reshape((2, 3))
        v2 = torch.tensor([], dtype=torch.float64).reshape((0,)).requires_grad_()
        v4 = v2.split(1, 0)[0]
        v4.detach().copy_(v2)
        v6 = v4.type_as(v1)
        """,
    "layout of a result": """
        v1 = torch.zeros(2, 3)
        v2 = v1.diagonal(0)
        v3 = torch.arange(8).reshape(2, 2, 2).transpose(0, 2)[1:]
        v4 = torch.maximum(torch.zeros(2), v3)
        torch.add(torch.zeros(2), v4, out=v2)
        """,
    "the operands that einsum() saves": """
        x = torch.tensor([2.0, 3.0], requires_grad=True)
        y = torch.einsum("i,i->i", x, x)
        x.data = torch.tensor([5.0, 7.0])
        v1 = torch.autograd.grad(y.sum(), [x])[0]
        """,
    "operands that overlap with gaps": """
        v1 = torch.tensor([1, 3, 3], dtype=torch.uint8)
        v2 = v1.as_strided((3,), (0,), 1)
        v1.fmod_(v2)
        """,
    "products with infinite complex numbers": """
        v1 = torch.tensor([1j])
        v2 = v1.std(dim=0, keepdim=True)
        v3 = v1.imag
        v1.add_(v2)
        """,
    "what comes from inference mode": """
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        v1 = torch.autograd.grad((x * x).sum(), [x], create_graph=True)[0]
        with torch.inference_mode():
            v1.data = torch.tensor([3.0, 4.0])
        v2 = torch.round(v1)
        """,
    "a view of what requires grad that was made without grad mode": """
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        with torch.inference_mode():
            v1 = x[:1]
        v2 = v1 * torch.tensor([3.0])
        v2.backward(torch.ones(1))
        v2.backward(torch.ones(1))
        """,
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_difference_that_stays_is_known(name: str) -> None:
    assert_known(lines_of(KNOWN[name]), name)


def test_a_refusal_of_a_view_that_leads_nowhere_is_known() -> None:
    program = """
        v6 = torch.tensor([1.5, -0.5, 2.0], requires_grad=True)
        v10 = v6 * 3
        with torch.no_grad():
            v11 = v10.unfold(0, 2, 1)
        v14 = torch.maximum(torch.tensor(True), v11)
        with torch.no_grad():
            v10.add_(3)
        v14.mean().backward()
        """
    assert_known(lines_of(program), "a view of what requires grad that was made without grad mode")


def test_an_assertion_of_pytorch_that_an_attribute_meets_is_known() -> None:
    program = """
        v1 = torch.tensor([-1.25, 0.75, 1.5, 0.0, 1.5, 1.5], dtype=torch.float32).reshape((2, 3))
        v2 = torch.tensor([3.0], dtype=torch.float64).reshape((1,)).requires_grad_()
        v1.copy_(v2)
        v2.mean().backward(retain_graph=True, inputs=[v1])
        v1.squeeze_(-2)
        v7 = torch.autograd.grad(v2.sum(), [v2])[0]
        v1[::2] = v7
        """
    assert_known(lines_of(program), "what PyTorch asserts", watch=True)


def test_an_assertion_of_pytorch_where_gradscope_refuses_the_line_for_a_fault_is_known() -> None:
    program = """
        v1 = torch.tensor(-2.0, dtype=torch.float64, requires_grad=True)
        v2 = torch.tensor([[2.0 + 1.0j, 0.25 + 0.5j], [1.5 + 1.0j, 0.25 + 0.5j]], requires_grad=True)
        v7 = torch.tanh(v2)
        v7[-2] = v1
        v7.abs().sum().backward()
        """
    assert_known(lines_of(program), "what PyTorch asserts")


@pytest.mark.parametrize(
    "program",
    [
        """
        v4 = torch.tensor([0.25], dtype=torch.float64, requires_grad=True) * 1
        v15 = Row.apply(v4)
        v16 = v15[None]
        with torch.inference_mode():
            v17 = v16.view_as(v4)
        v19 = v17.ravel()
        v19.detach().fmod_(1)
        """,
        """
        v1 = torch.tensor([1.0, -0.5], requires_grad=True)
        v5 = torch.autograd.grad((v1 * v1).sum(), v1, create_graph=True)[0]
        with torch.inference_mode():
            v5.data = v5.detach().clone()
        v5.requires_grad_()
        """,
    ],
)
def test_what_comes_from_inference_mode_is_known_wherever_it_is_met(program: str) -> None:
    assert_known(lines_of(program), "what comes from inference mode", watch=True)


def assert_known(lines: list[str], name: str, watch: bool = False) -> None:
    """Hold that the program diverges at its last line, in what has the given name."""
    divergence = first_divergence(lines, watch=watch)
    assert divergence is not None
    assert divergence.lines == tuple(lines)
    difference = known(divergence)
    assert difference is not None
    assert difference.name == name


@pytest.fixture
def coarse_sine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let gradscope's sine be wrong in a digit that is within the tolerance."""
    right = Side.run

    def run(self: Side, line: str) -> str:
        return right(self, line if self.module is torch else line.replace("torch.sin(x)", "torch.sin(x) - 1e-6"))

    monkeypatch.setattr(Side, "run", run)


@pytest.mark.usefixtures("coarse_sine")
def test_a_step_that_shows_the_last_digit_is_known() -> None:
    lines = ["x = torch.zeros(2)", "y = torch.sin(x)", "z = torch.floor(y)"]
    assert_known(lines, "the last digit, and the sign of a zero or a NaN")


@pytest.fixture
def wrong_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let gradscope's side take twice the negative."""
    right = Side.run

    def run(self: Side, line: str) -> str:
        return right(self, line if self.module is torch else line.replace("torch.neg(", "2 * torch.neg("))

    monkeypatch.setattr(Side, "run", run)


@pytest.mark.usefixtures("wrong_negative")
def test_a_long_run_prints_short_programs_that_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--programs", "40", "--show", "1"]) == 1
    shown = capsys.readouterr().out
    assert "torch.neg(" in shown
    program = shown.partition("--- program ")[2].partition("\n")[2].partition("\n#")[0]
    assert program.startswith("import torch\n")
    assert len([line for line in program.splitlines() if line.startswith("v")]) <= 3
    names: dict[str, Any] = {}
    exec(program.replace("import torch\n", "import gradscope as torch\n"), names)
    assert "v1" in names or "v2" in names


def test_a_long_run_is_quiet_when_all_agree(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--programs", "5", "--seed", "3"]) == 0
    assert capsys.readouterr().out.startswith("5 programs, 0 divergences")


@pytest.mark.usefixtures("wrong_negative")
def test_a_minimised_program_still_diverges() -> None:
    lines = ["x = torch.ones(2)", "y = x * 3", "z = torch.neg(y)", "u = z + 1"]
    divergence = first_divergence(lines, watch=False)
    assert divergence is not None
    assert minimise(divergence, watch=False).lines == ("x = torch.ones(2)", "y = x * 3", "z = torch.neg(y)")


def test_numbers_that_leave_the_range_end_a_program() -> None:
    assert first_divergence(["x = torch.full((2,), 1e30)", "y = torch.sin(x) * 0 + x.numel()"], watch=True) is None
    assert live.same(live.numpy.array([1.0, float("nan")]), live.numpy.array([1.0, float("nan")]))
