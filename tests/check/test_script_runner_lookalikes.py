"""Programs that look like misuse in place and are right: at least three of each code."""

import pytest

from gradscope.check import CODES, check_script
from tests.check.static.test_source_files import BAD, FINE
from tests.check.test_script_runner_catalogue import BEHIND_A_BACK, EARLY, FRAMEWORKS, MISUSE, SILENT, selecting, write

LOOKALIKES = {
    "GS101": {
        "write before anything saved it": """
            x = gs.ones(3, requires_grad=True)
            scores = x * 2
            scores.add_(1)
            scores.softmax(0).sum().backward()
            """,
        "multiplication by a number saves nothing": """
            x = gs.ones(3, requires_grad=True)
            y = x * 2
            y.relu_()
            y.sum().backward()
            """,
        "input of exp is not saved": """
            x = gs.ones(3, requires_grad=True)
            y = x * 1
            z = y.exp()
            y.zero_()
            z.sum().backward()
            """,
        "one view written, another operand saved": """
            x = gs.ones(2, 3, requires_grad=True)
            y = x * 2
            y.narrow(0, 0, 1).mul_(3)
            y.sum().backward()
            """,
        "a clone written": """
            x = gs.ones(3, requires_grad=True)
            y = x.exp()
            z = y.clone()
            z.add_(1)
            (y + z).sum().backward()
            """,
        "gradients of an input that do not need the modified tensor": """
            x = gs.ones(3, requires_grad=True)
            w = gs.ones(3)
            y = w * x
            x.detach().add_(1)
            y.sum().backward()
            """,
    },
    "GS102": {
        "step after backward": """
            model = gs.nn.Sequential(gs.nn.Linear(3, 4), gs.nn.ReLU(), gs.nn.Linear(4, 1))
            optimizer = gs.optim.Adam(model.parameters(), lr=0.1)
            for step in range(3):
                optimizer.zero_grad()
                model(gs.ones(2, 3)).sum().backward()
                optimizer.step()
            """,
        "parameter written through .data after backward": """
            w = gs.ones(3, requires_grad=True)
            for _ in range(3):
                (w * w).sum().backward()
                w.data -= 0.1 * w.grad
                w.grad = None
            """,
        "an optimizer of other parameters steps between forward and backward": """
            body, head = gs.nn.Linear(2, 2), gs.nn.Linear(2, 1)
            optimizer = gs.optim.SGD(head.parameters(), lr=0.1)
            head(gs.ones(1, 2)).sum().backward()
            loss = body(gs.ones(3, 2)).pow(2).sum()
            optimizer.step()
            loss.backward()
            """,
        "a discriminator steps, and the generator's loss is computed anew": """
            gs.manual_seed(0)
            generator, discriminator = gs.nn.Linear(2, 3), gs.nn.Linear(3, 1)
            optimizer = gs.optim.Adam(discriminator.parameters(), lr=0.1)
            fake = generator(gs.ones(5, 2))
            discriminator(fake.detach()).mean().backward()
            optimizer.step()
            discriminator(fake).mean().backward()
            """,
        "an average of the weights is updated between forward and backward": """
            model, average = gs.nn.Linear(2, 2), gs.nn.Linear(2, 2)
            loss = model(gs.ones(3, 2)).pow(2).sum()
            with gs.no_grad():
                for mean, parameter in zip(average.parameters(), model.parameters()):
                    mean.mul_(0.9).add_(parameter, alpha=0.1)
            loss.backward()
            """,
    },
    "GS103": {
        "leaf updated after backward, under no_grad": """
            w = gs.ones(3, requires_grad=True)
            for _ in range(3):
                (w * w).sum().backward()
                with gs.no_grad():
                    w -= 0.1 * w.grad
                w.grad = None
            """,
        "a leaf is initialised under no_grad": """
            w = gs.empty(2, 3, requires_grad=True)
            with gs.no_grad():
                w[0] = 1
                w[1].fill_(2)
            (w * w).sum().backward()
            """,
        "a leaf is initialised by nn.init": """
            layer = gs.nn.Linear(3, 3)
            gs.nn.init.zeros_(layer.bias)
            gs.nn.init.xavier_uniform_(layer.weight)
            layer(gs.ones(2, 3)).sum().backward()
            """,
        "a leaf is written before it requires grad": """
            w = gs.zeros(3)
            w[0] = 1
            w.requires_grad_()
            (w * w).sum().backward()
            """,
        "a view of what a leaf was computed to is written": """
            w = gs.ones(2, 3, requires_grad=True)
            h = w * 2
            h[0] = 0
            h.narrow(0, 1, 1).mul_(3)
            h.sum().backward()
            """,
    },
    "GS104": {
        "backward twice with retain_graph": """
            x = gs.ones(3, requires_grad=True)
            y = (x * x).sum()
            y.backward(retain_graph=True)
            y.backward()
            """,
        "backward twice where nothing is saved": """
            x = gs.ones(3, requires_grad=True)
            y = (x + 1).sum()
            y.backward()
            y.backward()
            """,
        "hidden state detached": """
            w = gs.ones(3, requires_grad=True)
            hidden = gs.ones(3)
            for step in range(3):
                hidden = (hidden.detach() * w).tanh()
                hidden.sum().backward()
            """,
        "two losses share a trunk, and are added": """
            w = gs.ones(3, requires_grad=True)
            h = (w * 2).exp()
            (h.sum() + h.pow(2).sum()).backward()
            """,
        "two losses share nothing but a leaf": """
            w = gs.ones(3, requires_grad=True)
            one, other = w.exp().sum(), w.pow(2).sum()
            one.backward()
            other.backward()
            """,
    },
    "GS105": {
        "parts that unbind() returned are written where nothing is recorded": """
            x = gs.ones(2, 3)
            first, second = x.unbind()
            second.mul_(2)
            w = gs.ones(3, requires_grad=True)
            (w * first + second).sum().backward()
            """,
        "parts taken by indexing are written": """
            x = gs.ones(2, 3, requires_grad=True)
            base = x * 2
            first, second = base[0], base[1]
            second.mul_(2)
            (first + second).sum().backward()
            """,
        "a view is made and written under no_grad": """
            x = gs.ones(4, requires_grad=True)
            base = x * 2
            with gs.no_grad():
                base.view(2, 2).add_(1)
            base.sum().backward()
            """,
        "a part that split() returned is rebound": """
            x = gs.ones(4, requires_grad=True)
            one, other = (x * 2).split(2)
            other = other + 1
            (one * other).sum().backward()
            """,
    },
    "GS106": {
        "array of numpy() read, and a copy written": """
            x = gs.ones(3, requires_grad=True)
            y = x.exp()
            array = y.detach().numpy()
            copy = array.copy()
            copy[:] = array.sum()
            y.sum().backward()
            """,
        "written through .data with the values that stood there": """
            x = gs.ones(3, requires_grad=True)
            y = x.exp()
            y.data.mul_(1)
            y.sum().backward()
            """,
        "batch_norm runs twice in training before backward": """
            norm = gs.nn.BatchNorm1d(2)
            x = gs.arange(8.0).view(4, 2).requires_grad_()
            (norm(x) + norm(x * 2)).pow(2).sum().backward()
            """,
        "a part of the memory written through .data that nobody saved": """
            x = gs.ones(4, requires_grad=True)
            y = x * 2
            z = y[:2].exp()
            y.data[2:] = 0
            z.sum().backward()
            """,
    },
    "GS107": {
        "a custom Function marks the input that it writes": """
            class Scale(gs.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.mark_dirty(x)
                    return x.mul_(2)

                @staticmethod
                def backward(ctx, grad):
                    return 2 * grad

            w = gs.ones(3, requires_grad=True)
            h = w * 1
            y = Scale.apply(h)
            (y + h).sum().backward()
            """,
        "a custom Function writes a copy of its input": """
            class Scale(gs.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x.clone().mul_(2)

                @staticmethod
                def backward(ctx, grad):
                    return 2 * grad

            w = gs.ones(3, requires_grad=True)
            h = w * 1
            (Scale.apply(h) + h).sum().backward()
            """,
        "a module is called for the write that it does": """
            class Center(gs.nn.Module):
                def forward(self, x):
                    mean = x.detach().mean()
                    x.sub_(mean)
                    return mean

            w = gs.ones(3, requires_grad=True)
            h = w * 2
            mean = Center()(h)
            (h.exp().sum() * mean).backward()
            """,
        "a module that works in place and returns its input": """
            layer, relu = gs.nn.Linear(3, 3), gs.nn.ReLU(inplace=True)
            h = layer(gs.ones(2, 3))
            relu(h)
            (h + h * 2).sum().backward()
            """,
        "a module that writes its input, which nobody reads again": """
            body = gs.nn.Sequential(gs.nn.ReLU(inplace=True), gs.nn.Linear(3, 3))
            x = gs.ones(2, 3, requires_grad=True)
            body(x * 2).sum().backward()
            """,
        "a module that writes a result of its own": """
            class Block(gs.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.body = gs.nn.Sequential(gs.nn.Linear(3, 3), gs.nn.ReLU(inplace=True), gs.nn.Linear(3, 3))

                def forward(self, x):
                    return self.body(x) + x

            x = gs.ones(2, 3, requires_grad=True)
            Block()(x * 2).sum().backward()
            """,
    },
    "GS108": {
        "a hook writes a gradient that nobody else gets": """
            x = gs.ones(3, requires_grad=True)
            y = x * 2
            y.register_hook(lambda grad: (grad.mul_(0.1), None)[1])
            y.exp().sum().backward()
            """,
        "a hook writes one part of a gradient, and other nodes get the other parts": """
            x = gs.ones(3, requires_grad=True)
            a, b = x * 2, x.exp()
            def slow_down(grad):
                grad.mul_(0.1)
            a.register_hook(slow_down)
            gs.stack([a, b]).pow(2).sum().backward()
            """,
        "a hook writes a gradient that a join has added to another before": """
            x = gs.ones(3, requires_grad=True)
            t = x * 1
            side = gs.tanh(t)
            def slow_down(grad):
                grad.mul_(0.1)
            side.register_hook(slow_down)
            total = t + side
            (total.pow(2).sum() + t.exp().sum()).backward()
            """,
        "a hook that writes a gradient which only its branch gets": """
            w = gs.ones(3, requires_grad=True)
            y = (w * 3).exp()
            y.register_hook(lambda grad: grad.mul_(0.1))
            (y**2).sum().backward()
            """,
        "a hook that writes what it passes on to two operands": """
            w = gs.ones(3, requires_grad=True)
            y = w * 2 + w * 3
            y.register_hook(lambda grad: grad.mul_(0.1))
            (y**2).sum().backward()
            """,
        "a hook that returns a new gradient": """
            w = gs.ones(3, requires_grad=True)
            a, b = w * 2, w * 3
            b.register_hook(lambda grad: grad * 0.1)
            ((a + b) ** 2).sum().backward()
            """,
        "a custom backward that writes a gradient of its own": """
            class Double(gs.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x * 2

                @staticmethod
                def backward(ctx, grad):
                    mine = grad.clone()
                    mine *= 2
                    return mine

            w = gs.ones(3, requires_grad=True)
            ((Double.apply(w) + w * 2) ** 2).sum().backward()
            """,
    },
    "GS111": {
        "a row of a clone of what expand() returned is assigned to": """
            x = gs.ones(3, requires_grad=True)
            rows = gs.zeros(1, 3).expand(4, 3).clone()
            rows[0] = x * 2
            rows.exp().sum().backward()
            """,
        "all places of the expanded dimension are filled": """
            rows = gs.zeros(2, 1).expand(2, 3)
            rows.fill_(4.0)
            x = gs.ones(2, 3, requires_grad=True)
            (x * rows).sum().backward()
            """,
        "expanded to the size that it has, or along a dimension of one": """
            rows = gs.zeros(2, 3).expand(1, 2, 3)
            rows[0, 1] = 4.0
            rows[0] = 2.0
            rows[:, 0, 1] = 1.0
            (gs.ones(3, requires_grad=True) * rows).sum().backward()
            """,
        "nothing is chosen": """
            rows = gs.zeros(3).expand(2, 3)
            rows[1:1] = 1.0
            (gs.ones(3, requires_grad=True) * rows).sum().backward()
            """,
    },
    "GS112": {
        "a parameter clamped through .data before forward": """
            w = gs.ones(3, requires_grad=True)
            for _ in range(2):
                w.data.clamp_(-0.5, 0.5)
                (w * w).sum().backward()
            """,
        "a straight-through estimator that says so": """
            w = gs.ones(3, requires_grad=True)
            h = w * 0.7
            (h + (h.sign() - h).detach()).sum().backward()
            """,
        "a result that is written in place, counted": """
            w = gs.ones(2, 3, requires_grad=True)
            h = w * 2
            row = h[0]
            h.mul_(2).add_(1)
            with gs.no_grad():
                h.clamp_(0, 2)
            (h.sum() + row.sum()).backward()
            """,
        "a result that is read through .data and NumPy": """
            w = gs.ones(3, requires_grad=True)
            h = (w * 2).exp()
            print(h.data.max(), h.detach().numpy().max())
            h.sum().backward()
            """,
        "a result written through .data when all have read it that will": """
            w = gs.ones(3, requires_grad=True)
            h = w * 2
            loss = h.sum()
            h.data.zero_()
            loss.backward()
            """,
    },
    "GS109": {
        "a clone of what expand() returned is written": """
            x = gs.ones(3, requires_grad=True)
            rows = (x * 2).expand(2, 3).clone()
            rows.add_(1)
            rows.exp().sum().backward()
            """,
        "expand() to the size that it has is written": """
            x = gs.ones(2, 3, requires_grad=True)
            rows = (x * 2).expand(2, 3)
            rows.add_(1)
            rows.exp().sum().backward()
            """,
        "the diagonal of a matrix is written": """
            x = gs.ones(3, 3, requires_grad=True)
            matrix = x * 2
            matrix.diagonal().zero_()
            matrix.exp().sum().backward()
            """,
        "what is expanded is only read": """
            x = gs.ones(3, requires_grad=True)
            total = gs.zeros(2, 3)
            total += x.expand(2, 3)
            total.exp().sum().backward()
            """,
    },
    "GS110": {
        "a custom Function keeps on ctx what changes by design": """
            class Counted(gs.autograd.Function):
                @staticmethod
                def forward(ctx, x, calls):
                    ctx.calls, ctx.x = calls, x
                    return x * 1

                @staticmethod
                def backward(ctx, grad):
                    ctx.calls.add_(1)
                    return grad, None

            w, calls = gs.ones(3, requires_grad=True), gs.zeros(1)
            y = Counted.apply(w * 1, calls)
            z = Counted.apply(y, calls)
            calls.add_(1)
            z.sum().backward()
            """,
        "a custom Function saves its input as it should": """
            class Square(gs.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.save_for_backward(x)
                    ctx.factor = 2
                    return x * x

                @staticmethod
                def backward(ctx, grad):
                    return ctx.factor * grad * ctx.saved_tensors[0]

            w = gs.ones(3, requires_grad=True)
            y = Square.apply(w * 1)
            y.mul_(10)
            y.sum().backward()
            """,
        "a tensor on ctx is written when backward has read it": """
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
            Square.apply(h).sum().backward()
            with gs.no_grad():
                h.mul_(10)
            """,
        "a tensor on ctx is written with the values that it has": """
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
            y = Square.apply(h)
            with gs.no_grad():
                h.clamp_(min=0)
            y.sum().backward()
            """,
    },
}

PROGRAMS = {f"{code} {name}": source for code, programs in LOOKALIKES.items() for name, source in programs.items()}


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_legal_lookalike_is_left_alone(source, framework, tmp_path):
    silences = selecting("GS", *(code for code, rule in CODES.items() if rule.opt_in))
    sanitizer, result = check_script(write(tmp_path / "program.py", source, framework), silences=silences)
    assert (sanitizer.findings, result.error, result.exit_code) == ([], None, 0)
    assert sanitizer.backwards >= 1


@pytest.mark.parametrize("code", CODES)
def test_each_code_has_three_bad_programs_and_three_lookalikes(code):
    run = [program.code for program in (*MISUSE, *BEHIND_A_BACK, *SILENT, *EARLY)]
    assert run.count(code) + len(BAD.get(code, ())) >= 3
    assert len(LOOKALIKES.get(code, ())) + len(FINE.get(code, ())) >= 3
