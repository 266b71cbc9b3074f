"""In-place misuse as it is met in real programs; test_script_runner_lookalikes.py has programs that look alike.

Each program marks the lines a report has to name with a comment that ends in the role: ``# written``, ``# saved``,
``# read``, ``# freed``, ``# viewed``, ``# shared``, ``# made``. The row numbers are those of docs/check.md.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from gradscope.check import Silences, check_script, finding_as_text
from gradscope.check.suppression.code_selection import CodeSelection


@dataclass(frozen=True)
class Program:
    row: str
    code: str
    source: str
    helps: str = ""
    occurrences: int = 1
    spared: bool = False
    # The role of a place that PyTorch does not tell: where a view was made that has no node of its own.
    not_in_torch: str = ""


MISUSE = [
    Program(
        "1 skip connection added into relu's result",
        "GS101",
        """
        def block(x, skip):
            out = gs.relu(x)  # saved
            out += skip  # written
            return out

        x = gs.ones(3, requires_grad=True)
        block(x * 2, x).sum().backward()  # read
        """,
        "write `out = out + skip`",
    ),
    Program(
        "2 sigmoid's result written",
        "GS101",
        """
        x = gs.ones(3, requires_grad=True)
        gate = gs.sigmoid(x)  # saved
        gate[1] = 2  # written
        gate.sum().backward()  # read
        """,
        "`gate = gate.clone()` before this line",
    ),
    Program(
        "2 exp's result written by method",
        "GS101",
        """
        x = gs.ones(3, requires_grad=True)
        rate = x.exp()  # saved
        rate.mul_(
            0.5
        )  # written: 2 lines up
        rate.sum().backward()  # read
        """,
        "write `rate = rate.mul(0.5)`",
    ),
    Program(
        "2 relu's result written by the layer behind it",
        "GS101",
        """
        net = gs.nn.Sequential(gs.nn.Linear(3, 4), gs.nn.ReLU(inplace=True), gs.nn.Dropout(0.2, inplace=True))
        out = net(gs.ones(5, 3))  # saved # written
        out.sum().backward()  # read
        """,
        "make that Dropout without inplace=True",
    ),
    Program(
        "2 tanh's result written by a layer with the flag",
        "GS101",
        """
        class Gate(gs.nn.Module):
            def __init__(self):
                super().__init__()
                self.act = gs.nn.ELU(inplace=True)

            def forward(self, x):
                h = gs.tanh(x)  # saved
                return self.act(h) * 2  # written

        x = gs.ones(3, requires_grad=True)
        Gate()(x).sum().backward()  # read
        """,
        "make that ELU without inplace=True",
    ),
    Program(
        "3 input of pow written",
        "GS101",
        """
        w = gs.ones(3, requires_grad=True)
        x = w * 2
        y = x**2  # saved
        x.add_(1)  # written
        y.sum().backward()  # read
        """,
        "write `x = x.add(1)`",
    ),
    Program(
        "5 leaf updated while recording",
        "GS103",
        """
        w = gs.ones(3, requires_grad=True)
        (w * w).sum().backward()
        w -= 0.1 * w.grad  # written
        """,
        "no_grad()",
    ),
    Program(
        "6 view of a leaf written",
        "GS103",
        """
        w = gs.ones(3, requires_grad=True)
        w[0] = 0  # written
        """,
        "no_grad()",
    ),
    Program(
        "6 view of a leaf written, made elsewhere",
        "GS103",
        """
        w = gs.ones(3, requires_grad=True)
        first = w.narrow(0, 0, 1)  # viewed
        first.zero_()  # written
        """,
        "no_grad()",
    ),
    Program(
        "7 mask on softmax's result",
        "GS101",
        """
        x = gs.ones(4, requires_grad=True)
        mask = gs.tensor([True, False, False, True])
        p = x.softmax(0)  # saved
        p[mask] = 0  # written
        p.sum().backward()  # read
        """,
        "`p = p.clone()` before this line",
    ),
    Program(
        "8 buffer filled in a loop",
        "GS101",
        """
        x = gs.ones(2, requires_grad=True)
        out = gs.zeros(4, 2)
        out[0] = x
        for t in range(1, 4):
            out[t] = out[t - 1] * out[t - 1]  # saved  # written
        out.sum().backward()  # read
        """,
        "collect the parts in a list and stack() them",
        occurrences=6,
        spared=True,
    ),
    Program(
        "37 other columns of a buffer written",
        "GS101",
        """
        x = gs.ones(3, requires_grad=True)
        buffer = gs.zeros(3, 4)
        y = buffer[:, 0] * x  # saved
        buffer[:, 1] = 1  # written
        buffer[:, 2].add_(1)  # written again
        y.sum().backward()  # read
        """,
        "clone() the part where it is saved",
        spared=True,
    ),
    Program(
        "37 other columns of a buffer written, then all of it",
        "GS101",
        """
        x = gs.ones(3, requires_grad=True)
        buffer = gs.zeros(3, 4)
        y = buffer[:, 0] * x  # saved
        buffer[:, 1] = 1  # written
        buffer.add_(1)  # written again
        y.sum().backward()  # read
        """,
        "`buffer = buffer.clone()` before this line",
    ),
    Program(
        "20 what expand() returned is written",
        "GS109",
        """
        bias = gs.zeros(3)
        rows = bias.expand(2, 3)  # viewed
        rows.add_(1)  # written
        """,
        "clone() rows before this line, or write `rows = rows.add(1)`",
        not_in_torch="viewed",
    ),
    Program(
        "13 a hidden state carried on with retain_graph=True, and a step in between",
        "GS102",
        """
        cell = gs.nn.Linear(2, 2)
        optimizer = gs.optim.SGD(cell.parameters(), lr=0.1)
        hidden = gs.ones(1, 2)
        for _ in range(2):
            hidden = gs.tanh(cell(gs.tanh(cell(hidden))))  # saved
            hidden.sum().backward(retain_graph=True)  # read
            optimizer.step()  # written
        """,
        "`h = h.detach()`",
    ),
    Program(
        "9 parameter updated between forward and backward",
        "GS102",
        """
        w = gs.ones(3, requires_grad=True)
        x = gs.ones(2, 3, requires_grad=True)
        loss = (x @ w).sum()  # saved
        with gs.no_grad():
            w -= 0.1  # written
        loss.backward()  # read
        """,
        "after backward()",
    ),
    Program(
        "9 optimizer step between forward and backward",
        "GS102",
        """
        w = gs.ones(3, requires_grad=True)
        optimizer = gs.optim.SGD([w], lr=0.1)
        (w * w).sum().backward()
        loss = (w * w).sum()  # saved
        optimizer.step()  # written
        loss.backward()  # read
        """,
        "call backward() before step()",
        occurrences=2,
    ),
    Program(
        "10 discriminator stepped before the generator's backward",
        "GS102",
        """
        gs.manual_seed(0)
        generator = gs.nn.Linear(2, 3)
        discriminator = gs.nn.Sequential(gs.nn.Linear(3, 4), gs.nn.ReLU(), gs.nn.Linear(4, 1))
        optimizer = gs.optim.Adam(discriminator.parameters(), lr=0.1)
        fake = generator(gs.ones(5, 2))
        loss_g = -discriminator(fake).mean()  # saved
        loss_d = discriminator(fake.detach()).mean()
        loss_d.backward()
        optimizer.step()  # written
        loss_g.backward()  # read
        """,
        "call backward() before step()",
        occurrences=2,
    ),
    Program(
        "14 backward twice",
        "GS104",
        """
        x = gs.ones(3, requires_grad=True)
        y = (x * x).sum()  # saved
        y.backward()  # freed
        y.backward()  # read
        """,
        "retain_graph=True",
    ),
    Program(
        "13 hidden state carried over",
        "GS104",
        """
        w = gs.ones(3, requires_grad=True)
        hidden = gs.ones(3)
        for step in range(2):
            hidden = (hidden * w).tanh()  # saved
            hidden.sum().backward()  # freed  # read
        """,
        "detach() what is carried",
    ),
    Program(
        "16 write through detach()",
        "GS101",
        """
        x = gs.ones(3, requires_grad=True)
        y = x.exp()  # saved
        y.detach().mul_(2)  # written
        y.sum().backward()  # read
        """,
        "`y.detach().clone()`",
    ),
    Program(
        "17 write under no_grad",
        "GS101",
        """
        x = gs.ones(3, requires_grad=True)
        y = x.tanh()  # saved
        with gs.no_grad():
            y += 1  # written
        y.sum().backward()  # read
        """,
        "write `y = y + 1`",
    ),
    Program(
        "21 view from unbind written",
        "GS105",
        """
        x = gs.ones(2, 3, requires_grad=True)
        first, second = (x * 2).unbind()  # viewed
        second.mul_(2)  # written
        """,
        "write `second = second.mul(2)`",
    ),
    Program(
        "21 base of a view from split written",
        "GS105",
        """
        x = gs.ones(4, requires_grad=True)
        base = x * 2
        halves = base.split(2)  # viewed
        base.add_(1)  # written
        halves[0] * 2  # read
        """,
        "out-of-place",
        not_in_torch="viewed",
    ),
    Program(
        "22 view made under no_grad written",
        "GS105",
        """
        x = gs.ones(4, requires_grad=True)
        base = x * 2
        with gs.no_grad():
            view = base.view(2, 2)  # viewed
        view.relu_()  # written
        """,
        "write `view = view.relu()`",
        not_in_torch="viewed",
    ),
    Program(
        "17 write into a buffer that was saved",
        "GS101",
        """
        mean = gs.zeros(3)
        x = gs.ones(3, requires_grad=True)
        y = ((x - mean) * mean).sum()  # saved
        mean.copy_(gs.ones(3))  # written
        y.backward()  # read
        """,
        "clone() of mean",
    ),
    Program(
        "14 second loss of a trunk whose graph the first has freed",
        "GS104",
        """
        w = gs.ones(3, requires_grad=True)
        h = (w * 2).exp()  # saved
        one, other = h.sum(), h.pow(2).sum()
        one.backward()  # freed
        other.backward()  # read
        """,
        "add the losses and call backward() once",
    ),
    Program(
        "20 one row of what broadcast_to() returned written",
        "GS109",
        """
        x = gs.ones(3, requires_grad=True)
        rows = gs.broadcast_to(x * 2, (2, 3))  # viewed
        rows.relu_()  # written
        """,
        "clone() rows before this line, or write `rows = rows.relu()`",
    ),
    Program(
        "20 weights of rows multiplied in their expanded form",
        "GS109",
        """
        x = gs.ones(2, requires_grad=True)
        scores = gs.zeros(2, 3)
        weights = (x * 2).unsqueeze(1).expand_as(scores)  # viewed
        weights *= scores  # written
        """,
        "clone() weights before this line, or write `weights = weights * scores`",
    ),
]


# Nothing raises: only the values tell.
SILENT = [
    Program(
        "20 one row of what expand() returned assigned to",
        "GS111",
        """
        x = gs.ones(3, requires_grad=True)
        rows = gs.zeros(1, 3).expand(4, 3)
        rows[0] = x * 2  # written
        """,
        "clone() rows before this line",
    ),
    Program(
        "20 a column of what broadcast_to() returned filled with a number",
        "GS111",
        """
        mask = gs.broadcast_to(gs.zeros(3, 1), (3, 5))
        mask[:, 0] = 1.0  # written
        """,
        "clone() mask before this line",
    ),
    Program(
        "20 rows chosen by a tensor, of an expanded one",
        "GS111",
        """
        bias = gs.zeros(2)
        per_head = bias.expand(3, 2)
        for head in range(1, 2):
            per_head[head, gs.tensor([1])] = 5.0  # written
        """,
        "clone() per_head before this line",
    ),
    Program(
        "15 parameter written through .data",
        "GS106",
        """
        w = gs.ones(3, requires_grad=True)
        y = (w * w).sum()  # saved
        w.data.add_(1)  # written
        y.backward()  # read
        """,
        "write it after backward()",
        occurrences=2,
    ),
    Program(
        "15 slice of a result written through .data",
        "GS106",
        """
        x = gs.ones(3, requires_grad=True)
        y = x.exp()  # saved
        inside = y.data  # shared
        inside[0] = 0  # written
        y.sum().backward()  # read
        """,
        "write into a clone()",
    ),
    Program(
        "18 source of from_numpy written",
        "GS106",
        """
        import numpy
        source = numpy.ones(3)
        w = gs.ones(3, dtype=gs.float64, requires_grad=True)
        x = gs.from_numpy(source)  # shared
        y = (x * w).sum()  # saved
        source[:] = 0
        y.backward()  # read
        """,
        "from_numpy",
    ),
    Program(
        "19 array of numpy() written",
        "GS106",
        """
        w = gs.ones(3, requires_grad=True)
        x = w * 2
        array = x.detach().numpy()  # shared
        y = (x * 3).exp()
        z = x.tanh().sum() + (x**2).sum()  # saved
        array[1] = 0
        (y.sum() + z).backward()  # read
        """,
        "clone() before numpy()",
    ),
    Program(
        "19 array that NumPy itself asked for",
        "GS106",
        """
        import numpy
        x = gs.ones(3, requires_grad=True)
        y = x.sigmoid()  # saved
        numpy.asarray(y.detach())[0] = 0  # shared
        y.sum().backward()  # read
        """,
        "clone() before numpy()",
    ),
    Program(
        "32 parameter replaced by assigning .data",
        "GS106",
        """
        w = gs.ones(3, requires_grad=True)
        y = (w * w).sum()  # saved
        w.data = gs.zeros(3)  # written
        y.backward()  # read
        """,
        "write it after backward()",
        occurrences=2,
    ),
    Program(
        "an alias made by DLPack is written",
        "GS106",
        """
        x = gs.ones(3, requires_grad=True)
        y = x.exp()  # saved
        alias = gs.from_dlpack(y.detach())  # shared
        alias.zero_()  # written
        y.sum().backward()  # read
        """,
        "clone()",
        not_in_torch="written",
    ),
]


# Looked for only where the code is selected.
EARLY = [
    Program(
        "a result clamped through .data before it is read",
        "GS112",
        """
        x = gs.ones(3, requires_grad=True)
        h = x * 2  # made
        h.data.clamp_(-1, 1)  # written
        h.sum().backward()  # read
        """,
        "h + (new - h).detach()",
    ),
    Program(
        "a mask on scores through .data, and a counted write after it",
        "GS112",
        """
        x = gs.ones(3, requires_grad=True)
        scores = x * 2  # made
        scores.data[1] = -9.0  # written
        scores += 1  # read
        scores.softmax(0)[0].backward()
        """,
        "scores + (new - scores).detach()",
    ),
    Program(
        "other values given to .data, twice",
        "GS112",
        """
        w = gs.ones(3, requires_grad=True)
        for _ in range(2):
            normed = w / w.sum()  # made
            normed.data = normed.detach().round()  # written
            normed.pow(2).sum().backward()  # read
        """,
        "compute the new values by an operator",
        occurrences=2,
    ),
    Program(
        "a view of a result written through NumPy",
        "GS112",
        """
        x = gs.ones(2, 3, requires_grad=True)
        rows = x * 2
        first = rows[0]  # made
        first.detach().numpy()[:] = 0  # shared
        (first * 3).sum().backward()  # read
        """,
        "compute the new values by an operator",
    ),
]


SILENT += [
    Program(
        f"18 the array given to {how} is written",
        "GS106",
        f"""
        import numpy as np
        given = np.ones(3)
        x = gs.ones(3, dtype=gs.float64, requires_grad=True)
        there = gs.{how}  # shared
        loss = (x * there).sum()  # saved
        given *= 2
        loss.backward()  # read
        """,
        copy,
    )
    for how, copy in (
        ("as_tensor(given)", "as_tensor(array.copy())"),
        ("asarray(given)", "asarray(array.copy())"),
        ("frombuffer(given, dtype=gs.float64)", "frombuffer(...).clone()"),
    )
]


BEHIND_A_BACK = [
    Program(
        "4 a residual branch that begins with ReLU(inplace=True)",
        "GS107",
        """
        class Block(gs.nn.Module):
            def __init__(self):
                super().__init__()
                self.body = gs.nn.Sequential(
                    gs.nn.ReLU(inplace=True),  # made
                    gs.nn.Linear(3, 3),
                )

            def forward(self, x):
                out = self.body(x)  # written
                return out + x  # read

        x = gs.ones(2, 3, requires_grad=True)
        gs.nn.Sequential(gs.nn.Linear(3, 3), Block())(x).sum().backward()
        """,
        "make that ReLU without inplace=True, or call self.body(x.clone())",
    ),
    Program(
        "4 a module's own forward writes its argument",
        "GS107",
        """
        class Scale(gs.nn.Module):
            def forward(self, x):
                x *= 2  # written
                return x.sum(1)

        w = gs.ones(2, 3, requires_grad=True)
        h = w * 1
        total = Scale()(h)
        (total + h.mean(1)).sum().backward()  # read
        """,
        "write a new tensor in Scale, or call Scale(h.clone())",
    ),
    Program(
        "27 a hook that is written on the line of the backward",
        "GS108",
        """
        x = gs.ones(1, requires_grad=True)
        t = x * 1  # read
        side = gs.tanh(t)
        side.register_hook(lambda g: (g.mul_(0.1), None)[1]), (t + side).pow(2).sum().backward()  # written
        """,
        "`return g * ...`",
    ),
    Program(
        "27 a hook writes a gradient that has come to a join already",
        "GS108",
        """
        x = gs.ones(1, requires_grad=True)
        t = x * 1  # read
        side = gs.tanh(t)
        def slow_down(grad):
            grad.mul_(0.1)  # written
        side.register_hook(slow_down)
        (t + side).pow(2).sum().backward()
        """,
        "`return grad * ...`",
    ),
    Program(
        "26 a custom backward writes a gradient that has come to a join already",
        "GS108",
        """
        class Halve(gs.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                grad.mul_(0.5)  # written
                return grad

        x = gs.ones(3, requires_grad=True)
        t = x * 1  # read
        (t + Halve.apply(t)).pow(2).sum().backward()
        """,
        "new gradient",
    ),
    Program(
        "27 a hook in a residual branch writes what the skip carries",
        "GS108",
        """
        x = gs.ones(3, requires_grad=True)
        first = x.exp() + x  # read
        branch = gs.sin(first)
        branch.register_hook(lambda grad: (grad.clamp_(-0.1, 0.1), None)[1])  # written
        (first + branch).pow(2).sum().backward()
        """,
    ),
    Program(
        "24 a tensor kept on ctx is written",
        "GS110",
        """
        class Square(gs.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.x = x
                return x * x

            @staticmethod
            def backward(ctx, grad):
                return 2 * grad * ctx.x

        w = gs.ones(3, requires_grad=True)
        h = w * 1
        y = Square.apply(h)  # saved
        with gs.no_grad():
            h.mul_(10)  # written
        y.sum().backward()  # read
        """,
        "ctx.save_for_backward()",
    ),
    Program(
        "25 a custom Function writes its input without mark_dirty()",
        "GS107",
        """
        class Scale(gs.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                x.mul_(2)  # written
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                return 2 * grad

        w = gs.ones(3, requires_grad=True)
        h = w * 1
        y = Scale.apply(h)
        (y + h).sum().backward()  # read
        """,
        "write a new tensor in Scale.forward, or call Scale.apply(h.clone())",
    ),
    Program(
        "27 a hook writes a gradient that the other branch gets too",
        "GS108",
        """
        w = gs.ones(3, requires_grad=True)
        def slow_down(grad):
            grad.mul_(0.1)  # written
        a = w * 2  # read
        b = w * 3
        b.register_hook(slow_down)
        ((a + b) ** 2).sum().backward()
        """,
        "`return grad * ...`",
    ),
    Program(
        "26 a custom backward writes the gradient that it is given",
        "GS108",
        """
        class Clip(gs.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                grad.clamp_(-0.1, 0.1)  # written
                return grad

        w = gs.ones(3, requires_grad=True)
        a = w * 2  # read
        b = Clip.apply(w * 3)
        ((a + b) ** 2).sum().backward()
        """,
        "new gradient",
    ),
    Program(
        "24 a result kept on ctx is written",
        "GS110",
        """
        class Exp(gs.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.result = x.exp()
                return ctx.result

            @staticmethod
            def backward(ctx, grad):
                return grad * ctx.result

        w = gs.ones(3, requires_grad=True)
        y = Exp.apply(w * 1)  # saved
        z = y.sum()
        with gs.no_grad():
            y.zero_()  # written
        z.backward()  # read
        """,
        "ctx.save_for_backward()",
    ),
    Program(
        "24 an input in a list on ctx is written",
        "GS110",
        """
        class Product(gs.autograd.Function):
            @staticmethod
            def forward(ctx, *factors):
                ctx.kept = {"factors": None, "count": len(factors)}
                ctx.factors = list(factors)
                return factors[0] * factors[1]

            @staticmethod
            def backward(ctx, grad):
                return grad * ctx.factors[1], grad * ctx.factors[0]

        w = gs.ones(3, requires_grad=True)
        h = w * 1
        y = Product.apply(h, w)  # saved
        with gs.no_grad():
            h.mul_(10)  # written
        y.sum().backward()  # read
        """,
        "ctx.save_for_backward()",
    ),
    Program(
        "24 a weight kept on ctx is stepped",
        "GS110",
        """
        class Scale(gs.autograd.Function):
            @staticmethod
            def forward(ctx, x, weight):
                ctx.x, ctx.weight = x, weight
                return x * weight

            @staticmethod
            def backward(ctx, grad):
                return grad * ctx.weight, grad * ctx.x

        weight = gs.ones(3, requires_grad=True)
        x = gs.ones(3, requires_grad=True)
        optimizer = gs.optim.SGD([weight], lr=0.1)
        (weight * 2).sum().backward()
        loss = Scale.apply(x, weight).sum()  # saved
        optimizer.step()  # written
        loss.backward()  # read
        """,
        "ctx.save_for_backward()",
    ),
]

# The programs are the same in both, but for the import.
FRAMEWORKS = ["gradscope", pytest.param("torch", marks=pytest.mark.torch)]


# How a help begins: it says what to do, and nothing of what has happened.
TO_DO = {
    "add", "call", "clone()", "compute", "detach()", "give", "keep", "look", "make", "update", "use", "write",
}  # fmt: skip


def write(path, source, framework):
    if framework == "torch":
        pytest.importorskip("torch")
    path.write_text(f"import {framework} as gs\n" + dedent(source))
    return str(path)


def marked(path):
    """Return the expected (role, line) pairs of a program; 'N lines up' moves a mark."""
    found = {}
    for number, line in enumerate(Path(path).read_text().splitlines(), start=1):
        up = re.search(r"(\d+) lines up", line)
        for role in re.findall(r"# (written again|written|saved|read|freed|viewed|shared|made)\b", line):
            found[role] = number - int(up.group(1)) if up else number
    return found


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("program", MISUSE, ids=lambda p: p.row)
def test_misuse_is_reported_with_its_lines(program, framework, tmp_path):
    path = write(tmp_path / "program.py", program.source, framework)
    sanitizer, result = check_script(path)
    (finding,) = sanitizer.findings
    assert finding.code == program.code
    expected = marked(path)
    if framework == "torch":
        expected.pop(program.not_in_torch, None)
    assert {s.role: s.location.lineno for s in finding.sites} == expected
    assert {s.location.filename for s in finding.sites} == {path}
    assert program.helps in finding.help
    assert finding.help.split()[0] in TO_DO
    assert finding.occurrences == program.occurrences
    assert finding.spared == program.spared
    assert ("other parts of the memory" in finding_as_text(finding)) == program.spared
    assert sanitizer.explains(result.error)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("program", SILENT, ids=lambda p: p.row)
def test_what_raises_nothing_is_found_by_its_values(program, framework, tmp_path):
    path = write(tmp_path / "program.py", program.source, framework)
    sanitizer, result = check_script(path)
    assert result.error is None
    (finding,) = sanitizer.findings
    assert (finding.code, finding.severity) == (program.code, "silent-wrong")
    assert finding.saved_version == finding.current_version
    expected = marked(path)
    if framework == "torch":
        expected.pop(program.not_in_torch, None)
    assert {s.role: s.location.lineno for s in finding.sites} == expected
    assert program.helps in finding.help
    assert finding.help.split()[0] in TO_DO
    assert finding.occurrences == program.occurrences


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("program", BEHIND_A_BACK, ids=lambda p: p.row)
def test_what_is_changed_behind_a_back_is_reported(program, framework, tmp_path):
    path = write(tmp_path / "program.py", program.source, framework)
    sanitizer, result = check_script(path)
    assert result.error is None
    (finding,) = sanitizer.findings
    assert (finding.code, finding.severity) == (program.code, "silent-wrong")
    assert {s.role: s.location.lineno for s in finding.sites} == marked(path)
    assert program.helps in finding.help
    assert finding.help.split()[0] in TO_DO


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("program", EARLY, ids=lambda p: p.row)
def test_what_is_opt_in_is_found_where_it_is_selected(program, framework, tmp_path):
    path = write(tmp_path / "program.py", program.source, framework)
    assert check_script(path)[0].findings == []
    sanitizer, result = check_script(path, silences=selecting("GS", program.code))
    assert result.error is None
    (finding,) = sanitizer.findings
    assert (finding.code, finding.severity) == (program.code, "silent-wrong")
    assert {s.role: s.location.lineno for s in finding.sites} == marked(path)
    assert program.helps in finding.help
    assert finding.help.split()[0] in TO_DO
    assert finding.occurrences == program.occurrences


def selecting(*codes):
    return Silences(CodeSelection(codes))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_one_write_of_a_result_that_was_saved_too_is_one_finding(framework, tmp_path):
    source = """
        x = gs.ones(3, requires_grad=True)
        h = x.exp()
        h.data.mul_(2)
        h.sum().backward()
        """
    path = write(tmp_path / "program.py", source, framework)
    sanitizer, _ = check_script(path, silences=selecting("GS", "GS112"))
    (finding,) = sanitizer.findings
    assert (finding.code, [other.code for other in finding.also]) == ("GS112", ["GS106"])
