"""Without a ledger: what the source in reach tells of a missing gradient, on both frameworks."""

import ast
import json
import textwrap
import types
from pathlib import Path

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.diagnosis.no_gradient.detaching_calls import (
    FREEZING,
    SWITCHING,
    detaching_call,
    freezing,
    switched_off,
)
from gradscope.inspect.diagnosis.no_gradient.loss_terms import crossed
from gradscope.inspect.diagnosis.no_gradient.no_grad_reasons import Reason
from gradscope.inspect.diagnosis.no_gradient.program_slices import FUNCTIONS, ProgramSlice
from gradscope.inspect.diagnosis.no_gradient.source_suspects import SourceInReach
from tests.inspect.diagnosis.lines import line


def model_of(fw):
    class Encoder(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = fw.nn.ModuleList([fw.nn.Linear(3, 3), fw.nn.Linear(3, 3)])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x).tanh()
            return x

    class Model(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = Encoder()
            self.gate = fw.nn.Linear(3, 3)
            self.head = fw.nn.Linear(3, 1)
            self.spare = fw.nn.Linear(3, 1)

        def encode(self, x):
            return self.encoder(x)

        def forward(self, x):
            h = self.encode(x)
            mask = self.gate(x) > 0  # HERE: static mask
            print("mean", h.mean().item(), h.shape)
            h = h.detach() * mask  # HERE: static detach
            return self.head(h)

    return Model()


def suspects(found):
    return [(suspect.reason, suspect.location.lineno) for suspect in found.suspects]


def here(mark):
    return line(__file__, mark)


# --- in modules -------------------------------------------------------------------------------------------------------


def test_a_detach_in_forward(fw):
    model = model_of(fw)
    loss = model(fw.ones(2, 3)).sum()
    found = gi.why_no_grad(model.encoder.layers[0].weight, loss)
    assert (found.name, found.reason) == ("encoder.layers.0.weight", Reason.NOT_REACHED)
    # Neither the printed mean nor the gate's mask is on the way of this one.
    assert suspects(found) == [(Reason.DETACHED, here("static detach"))]
    text = str(found).splitlines()
    assert text[1] == "  Suspects, read in the source and not seen running:"
    assert "(h = h.detach() * mask  # HERE: static detach): detach() gives a tensor without history" in text[2]
    assert text[3].startswith(
        "  `gradscope doctor SCRIPT`, or the forward pass under `with gradscope.inspect.ledger():`"
    )


def test_a_mask_is_named_where_nothing_else_is(fw):
    model = model_of(fw)
    loss = model(fw.ones(2, 3)).sum()
    assert suspects(gi.why_no_grad(model.gate.weight, loss)) == [(Reason.NOT_DIFFERENTIABLE, here("static mask"))]


def test_a_child_that_the_forward_does_not_name(fw):
    model = model_of(fw)
    loss = model(fw.ones(2, 3)).sum()
    (suspect,) = gi.why_no_grad(model.spare.weight, loss).suspects
    assert suspect.reason is Reason.UNUSED_MODULE
    assert suspect.text.endswith("Model does not name `spare` outside of __init__()")


def test_a_report_tells_each_group_its_own(fw):
    model = model_of(fw)
    report = gi.why_no_grad(model, model(fw.ones(2, 3)).sum())
    text = str(report)
    assert text.count("Suspects, read in the source") == 3
    assert text.count("static detach") == 1
    assert report.table().row_count == 10 + 8  # a row each, and a suspect for each that is not reached


def test_with_a_ledger_there_are_none(fw):
    model = model_of(fw)
    with gi.ledger():
        loss = model(fw.ones(2, 3)).sum()
    found = gi.why_no_grad(model.encoder.layers[0].weight, loss)
    assert (found.reason, found.suspects) == (Reason.DETACHED, ())


def test_a_decorated_forward(fw):
    class Frozen(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = fw.nn.Linear(3, 1)

        @fw.no_grad()
        def forward(self, x):
            return self.body(x)  # HERE: static decorated

    model = Frozen()
    found = gi.why_no_grad(model.body.weight, model(fw.ones(2, 3)).sum())
    assert found.reason is Reason.NO_GRAPH
    assert suspects(found) == [(Reason.NO_GRAD, here("static decorated"))]


def test_a_helper_that_is_handed_the_value(fw):
    class Net(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = fw.nn.Linear(3, 3)
            self.scale = fw.nn.Parameter(fw.ones(1))

        def forward(self, x):
            return normalised(fw, self.body(x)) * self.scale

    model = Net()
    found = gi.why_no_grad(model.body.weight, model(fw.ones(2, 3)).sum())
    assert suspects(found) == [(Reason.OUTSIDE, here("static helper"))]


def normalised(fw, value):
    size = value.size(0) > 1
    values = fw.tensor(value.tolist())  # HERE: static helper
    return values / len(value) if size else values


# --- in functions -----------------------------------------------------------------------------------------------------


def test_in_the_function_that_asks(fw):
    w, v = fw.ones(3, requires_grad=True), fw.ones(3, requires_grad=True)
    other = (v * 2).detach()
    with fw.no_grad():
        h = w * 2  # HERE: static block
    loss = (h * v + other).sum()
    found = gi.why_no_grad(w, loss)
    assert suspects(found) == [(Reason.NO_GRAD, here("static block"))]
    assert f"from line {here('static block') - 1}" in found.suspects[0].text


def test_in_a_function_that_has_returned(fw):
    model = fw.nn.Linear(3, 2)
    loss = chosen(model, fw.ones(2, 3)).sum() * fw.ones(1, requires_grad=True)
    assert (Reason.NOT_DIFFERENTIABLE, here("static argmax")) in suspects(gi.why_no_grad(model.weight, loss))


def chosen(model, x):
    scores = model(x)
    return scores.argmax(1)  # HERE: static argmax


class Trainer:
    def __init__(self, fw):
        self.fw = fw
        self.body, self.head = fw.nn.Linear(3, 3), fw.nn.Linear(3, 1)

    def features(self, x):
        with self.fw.no_grad():
            return self.body(x)  # HERE: static trainer

    def loss(self, x):
        return self.head(self.features(x)).sum()

    def ask(self, loss):
        return gi.why_no_grad(self.body.weight, loss)


@pytest.mark.parametrize("inside", [False, True])
def test_in_a_method_that_has_returned(fw, inside):
    trainer = Trainer(fw)
    loss = trainer.loss(fw.ones(2, 3))
    found = trainer.ask(loss) if inside else gi.why_no_grad(trainer.body.weight, loss)
    assert suspects(found)[0] == (Reason.NO_GRAD, here("static trainer"))


def test_a_parameter_that_was_replaced(fw):
    model = fw.nn.Linear(3, 1)
    loss = model(fw.ones(2, 3)).sum()
    model.weight = fw.nn.Parameter(fw.ones(1, 3))  # HERE: static replaced
    found = gi.why_no_grad(model.weight, loss)
    assert suspects(found)[0] == (Reason.REBOUND, here("static replaced"))


def test_a_result_without_history(fw):
    w = fw.ones(3, requires_grad=True)
    h = (w * 2).detach()  # HERE: static result
    found = gi.why_no_grad(h, (h * w).sum())
    assert found.reason is Reason.FROZEN
    assert suspects(found) == [(Reason.DETACHED, here("static result"))]


def test_what_has_frozen_a_parameter(fw):
    frozen = fw.nn.Linear(3, 1).requires_grad_(False)  # HERE: static frozen
    found = gi.why_no_grad(frozen.weight, fw.ones(3, requires_grad=True).sum())
    assert [s.location.lineno for s in found.suspects if s.location.filename == __file__] == [
        line(__file__, "static frozen")
    ]
    assert "sets requires_grad" in str(found)


def test_what_cannot_be_followed_says_so(fw):
    box = types.SimpleNamespace()
    w, v = fw.ones(3, requires_grad=True), fw.ones(3, requires_grad=True)
    setattr(box, "w", w)  # noqa: B010 - not to be followed
    loss = (box.w.detach() * v).sum()  # HERE: static elsewhere
    found = gi.why_no_grad(w, loss)
    assert (Reason.DETACHED, here("static elsewhere")) in suspects(found)
    assert all(s.text.endswith("whether it is on the way could not be read") for s in found.suspects)


def test_without_source_there_are_none(fw):
    space = {"fw": fw, "gi": gi}
    exec("w = fw.ones(2, requires_grad=True)\nfound = gi.why_no_grad(w, fw.ones(2, requires_grad=True).sum())", space)
    assert all(suspect.location.filename == __file__ for suspect in space["found"].suspects)


def test_forms(fw):
    model = model_of(fw)
    found = gi.why_no_grad(model.encoder.layers[0].weight, model(fw.ones(2, 3)).sum())
    (data,) = json.loads(found.to_json())["suspects"]
    assert (data["reason"], data["location"]["line"]) == ("detached", here("static detach"))
    assert found.table().row_count == 2
    assert found.location is None


def test_no_variable_on_the_stack_wakes_up(fw):
    class Proxy:
        @property
        def __class__(self):
            raise AssertionError("was asked")

        def __getattribute__(self, name):
            raise AssertionError(name)

    lazy = Proxy()
    w = fw.ones(3, requires_grad=True)
    loss = (w.detach() * fw.ones(3, requires_grad=True)).sum()
    assert gi.why_no_grad(w, loss).suspects[0].reason is Reason.DETACHED
    assert type(lazy) is Proxy


def test_no_property_of_the_model_runs(fw):
    class Shy(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = fw.nn.Linear(3, 1)

        @property
        def detach(self):
            raise AssertionError("was run")

        def forward(self, x):
            return self.body(x).detach()

    model = Shy()
    assert gi.why_no_grad(model.body.weight, model(fw.ones(1, 3)).sum()).suspects[0].reason is Reason.DETACHED


# --- the table of cuts ------------------------------------------------------------------------------------------------

CUTS = [
    ("x.detach()", Reason.DETACHED),
    ("x.detach_()", Reason.DETACHED),
    ("x.data", Reason.OUTSIDE),
    ("x.cpu().numpy()", Reason.OUTSIDE),
    ("x.item()", Reason.OUTSIDE),
    ("float(x)", Reason.OUTSIDE),
    ("torch.tensor(x)", Reason.OUTSIDE),
    ("Tensor(x)", Reason.OUTSIDE),
    ("gs.from_numpy(a(x))", Reason.OUTSIDE),
    ("torch.argmax(x, 1)", Reason.NOT_DIFFERENTIABLE),
    ("x.argmin()", Reason.NOT_DIFFERENTIABLE),
    ("x.long()", Reason.NOT_DIFFERENTIABLE),
    ("x.to(torch.int64)", Reason.NOT_DIFFERENTIABLE),
    ("x.to(dtype=gs.bool)", Reason.NOT_DIFFERENTIABLE),
    ("x > 0", Reason.NOT_DIFFERENTIABLE),
    ("Categorical(x).sample()", Reason.NO_GRAD),
]
WHOLE = ["x * 2", "x.to('cuda')", "x.to(torch.float32)", "x.relu()", "x is None", "x.view(2, 3)", "torch.zeros(3)"]


def flow(source, carried=("x",), **options):
    return ProgramSlice(ast.parse(textwrap.dedent(source)).body, carried, **options)


@pytest.mark.parametrize(("expression", "reason"), CUTS, ids=[c[0] for c in CUTS])
def test_cuts(expression, reason):
    (hit,) = flow(f"y = {expression}\nz = other.detach()").detaching_lines()
    assert hit.cut.reason is reason


@pytest.mark.parametrize("expression", WHOLE)
def test_what_does_not_cut(expression):
    assert list(flow(f"y = {expression}").detaching_lines()) == []
    assert detaching_call(ast.parse(expression, mode="eval").body) is None


# --- the way of a value -----------------------------------------------------------------------------------------------

WAYS = [
    ("y = x\nreturn y.detach()", [2]),
    ("y = f(x)\nz = y.detach()\nreturn g(z)", [2]),
    ("y = x.detach()\nreturn x", []),
    ("y = other.detach()\nreturn y + x", []),
    ("return x.shape[0] > 1", []),
    ("if x.sum() > 0:\n    return x\nreturn x * 2", []),
    ("losses.append(x.item())\nx.backward()", []),
    ("y = x.detach()\ny.backward()", [1]),
    ("y = y.detach() * x\nreturn y", []),
    ("for i in range(3):\n    z = y.detach()\n    y = z + x\nreturn y", [2]),
    ("with no_grad():\n    y = x * 2\nreturn y", [2]),
    ("with set_grad_enabled(False):\n    y = x * 2\nreturn y", [2]),
    ("with set_grad_enabled(training):\n    y = x * 2\nreturn y", []),
    ("with open(p) as f:\n    y = x.data\nreturn y", [2]),
    ("try:\n    y = x.numpy()\nfinally:\n    pass\nreturn y", [2]),
    ("a, (b, c.d) = x, 1\nreturn c.d.detach()", [2]),
    ("out[0] = x\nreturn out.detach()", [2]),
    ("out.copy_(x)\nreturn out.detach()", [2]),
    ("if (y := x.detach()) is not None:\n    return y", []),
    ("z = (y := x) + 1\nreturn y.detach()", [2]),
    ("match k:\n    case 1:\n        y = x.detach()\nreturn y", [3]),
    ("def inner(a):\n    return a\nreturn inner(x).detach()", [3]),
    ("class A:\n    y = x.detach()\nreturn x", []),
    ("y: object = x.detach()\nreturn y", [1]),
    ("y += x.detach()\nreturn y", [1]),
]


@pytest.mark.parametrize(("body", "lines"), WAYS, ids=[w[0].replace("\n", "; ") for w in WAYS])
def test_ways(body, lines):
    source = "def f():\n" + textwrap.indent(body, "    ")
    (function,) = ast.parse(source).body
    assert sorted({hit.lineno - 1 for hit in ProgramSlice(function.body, ["x"]).detaching_lines()}) == lines


def test_what_begins_with_the_value_may_lead_elsewhere():
    source = "y = model.head(z).detach()\nw = model.body(z).detach()"
    assert [hit.lineno for hit in flow(source, ["model"], beside=["model.head"]).detaching_lines()] == [2]


def test_an_end_may_be_named():
    assert [hit.lineno for hit in flow("a = x.detach()\nb = x.detach()", ends=["b"]).detaching_lines()] == [2]


def test_calls_that_are_given_the_value():
    (passed,) = flow("y = self.encode(1, x, scale=x, other=2)").passed()
    assert passed == ("self.encode", (1,), ("scale",))


def test_any_function_can_be_read():
    for file in sorted(Path(gs.nn.__file__).parent.rglob("*.py")):
        functions = [
            node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, FUNCTIONS)
        ]
        for function in functions:
            read = ProgramSlice(function.body, [argument.arg for argument in function.args.args])
            assert all(function.lineno < hit.lineno <= function.end_lineno for hit in read.detaching_lines())
            assert all(passed.places or passed.keywords for passed in read.passed())


def test_nothing_in_reach():
    assert SourceInReach([], None).suspects(object()) == ()


def test_one_prediction_and_one_target_are_not_compared_across():
    assert crossed([(1, 1), (1,)]) == ""
    assert crossed([(2,), (2, 1)]) == "(2,) and (2, 1) broadcast to (2, 2)"


@pytest.mark.parametrize(
    "statement",
    [
        *("p.requires_grad = False", "p.requires_grad=flag", "p.requires_grad = q.requires_grad = True"),
        *("p.requires_grad = True if late else False", "p.requires_grad \\\n = False", "(p.requires_grad) = False"),
        *("p.requires_grad_(False)", "p.requires_grad_(\n    requires_grad=late\n)", "(p.requires_grad_)(False)"),
        *("p.requires_grad = True", "p.requires_grad_()", "p.requires_grad_( True )", "p.requires_grad == False"),
        *("f(requires_grad=True)", "p.requires_grad = True  # again"),
    ],
)
def test_what_freezes_is_found_in_the_text_first(statement):
    tree = ast.parse(statement)
    assert not freezing(tree) or FREEZING.search(statement)


def test_text_that_freezes_nothing_is_not_parsed():
    source = (
        "x = ones(3, requires_grad=True)\ny = ones(3, requires_grad = True)\nz.requires_grad_()\nw.requires_grad_(True)"
    )
    assert freezing(ast.parse(source)) == []
    assert FREEZING.search(source) is None


def test_what_turns_recording_off_is_found_in_the_text_first():
    source = "torch.set_grad_enabled(False)"
    assert switched_off(ast.parse(source)) == [1]
    assert SWITCHING.search(source)
