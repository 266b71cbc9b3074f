"""Who produces NaN and Inf, why, and who passes them on; on both frameworks."""

import json
import math
import traceback

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.diagnosis.nan.nan_causes import backward_cause, forward_cause
from gradscope.inspect.diagnosis.nan.nan_producers import all_finite
from tests.inspect.diagnosis.lines import line

NAN, INF = math.nan, math.inf


def watched(function):
    with gi.watch_nan() as watch:
        function()
    return watch.origin


FORWARD = [
    ("log", lambda x: x([0.0]).log(), "Inf", "log", "log of 0"),
    ("log negative", lambda x: x([-1.0]).log(), "NaN", "log", "log of a negative number"),
    ("log1p", lambda x: x([-1.0]).log1p(), "Inf", "log1p", "log1p of -1"),
    ("sqrt", lambda x: x([4.0, -1.0]).sqrt(), "NaN", "sqrt", "square root of a negative number"),
    ("rsqrt", lambda x: x([0.0]).rsqrt(), "Inf", "rsqrt", "1 / sqrt(0)"),
    ("0/0", lambda x: x([0.0]) / x([0.0]), "NaN", "div", "0 / 0"),
    ("1/0", lambda x: x([1.0]) / 0.0, "Inf", "div", "division by 0"),
    ("inf/inf", lambda x: x([INF]) / x([INF]), "NaN", "div", "inf / inf"),
    ("tiny", lambda x: x([1e30]) / x([1e-30]), "Inf", "div", "division by a tiny value overflows (1e+30 / 1e-30)"),
    ("0*inf", lambda x: x([0.0]) * x([INF]), "NaN", "mul", "0 * inf"),
    ("inf-inf", lambda x: x([INF]) - x([INF]), "NaN", "sub", "inf - inf"),
    ("exp", lambda x: x([1.0, 100.0]).exp(), "Inf", "exp", "overflow: exp of 100 is too large for its dtype"),
    ("overflow", lambda x: x([1e30]) * x([1e30]), "Inf", "mul", "overflow: the result is too large for its dtype"),
    ("0**-1", lambda x: x([0.0]) ** -1, "Inf", "pow", "0 to a negative power"),
    ("-1**.5", lambda x: x([-1.0]) ** 0.5, "NaN", "pow", "a negative number to a fractional power"),
    ("acos", lambda x: x([1.5]).acos(), "NaN", "acos", "its argument is outside of [-1, 1]"),
    ("reciprocal", lambda x: x([0.0]).reciprocal(), "Inf", "reciprocal", "1 / 0"),
    ("masked row", lambda x: x([[-INF, -INF]]).softmax(1), "NaN", "softmax", "every entry of the row is -inf"),
    ("row with inf", lambda x: x([[INF, 0.0]]).softmax(1), "NaN", "softmax", "a row has an entry of +inf"),
    ("sum", lambda x: x([INF, -INF]).sum(), "NaN", "sum", "an infinity among its inputs"),
    ("empty mean", lambda x: x([1.0])[:0].mean(), "NaN", "mean", "the mean of no elements"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("function", "value", "name", "text"), [f[1:] for f in FORWARD], ids=[f[0] for f in FORWARD])
def test_forward(fw, function, value, name, text):
    origin = watched(lambda: function(fw.tensor))
    producers = [b for b in origin.producers if b.name == name]
    assert producers, str(origin)
    assert (producers[0].value, producers[0].direction) == (value, "forward")
    assert producers[0].text.startswith(text)


def test_float16_overflows(fw):
    origin = watched(lambda: fw.tensor([12.0], dtype=fw.float16).exp())
    assert origin.first.text == "overflow: exp of 12 is too large for its dtype"


def test_the_element_the_operands_and_the_line(fw):
    x, y = fw.tensor([[1.0, 2.0], [0.0, 3.0]]), fw.tensor([1.0, 0.0])
    origin = watched(lambda: x / (x * y))  # HERE: division
    first = origin.first
    assert (first.element, first.shape, first.numel) == ((1, 0), (2, 2), 4)
    assert first.operands == (("input 0", 0.0), ("input 1", 0.0))
    assert (first.location.filename, first.location.lineno) == (__file__, line(__file__, "division"))
    assert "element [1, 0] of (2, 2): input 0 = 0, input 1 = 0" in str(origin)


def test_producers_are_told_from_those_who_pass_on(fw):
    def program():
        y = fw.tensor([-1.0, 1.0]).log()
        z = y * 2
        z.exp().sum()

    origin = watched(program)
    assert [b.name for b in origin.producers] == ["log"]
    assert [step.name for step in origin.first.chain] == ["mul", "exp", "sum"]
    assert origin.passed_on == 3


def test_an_infinity_that_becomes_nan_is_the_origin(fw):
    origin = watched(lambda: (fw.tensor([200.0]).exp() * 0.0).sum())
    assert (origin.first.name, origin.first.value) == ("exp", "Inf")
    assert [(b.name, b.text) for b in origin.producers] == [
        ("exp", "overflow: exp of 200 is too large for its dtype"),
        ("mul", "0 * inf"),
    ]


def test_a_mask_of_minus_inf_is_no_fault(fw):
    def program():
        scores = fw.zeros(2, 3).masked_fill(fw.tensor([[True, False, False], [False] * 3]), -INF)
        scores.softmax(1).sum()

    assert not watched(program)


def test_nan_in_the_data(fw):
    data = fw.tensor([NAN, 1.0])
    origin = watched(lambda: (data * 2).sum())
    assert origin.first.text == "it was in a tensor that no operator made: in the data"


def test_an_inplace_operator(fw):
    origin = watched(lambda: fw.tensor([-1.0]).log_().mul_(2))
    assert [b.name for b in origin.producers] == ["log"]


def test_hidden_by_nan_to_num(fw):
    x = fw.tensor([0.0, 1.0], requires_grad=True)

    def program():
        y = fw.tensor([0.0, 1.0], requires_grad=True) / x
        y.nan_to_num().sum().backward()

    origin = watched(program)
    assert "nan_to_num" in [step.name for step in origin.masked]
    assert "hidden by nan_to_num" in str(origin)
    assert origin.parameters


# --- backward ---------------------------------------------------------------------------------------------------------


def test_the_double_where(fw):
    x = fw.tensor([0.0, 4.0], requires_grad=True)
    loss = fw.where(x > 0, x.sqrt(), fw.zeros(2)).sum()
    first = gi.nan_origin(loss, params={"x": x}).first
    assert (first.name, first.direction, first.value, first.element) == ("SqrtBackward0", "backward", "NaN", (0,))
    assert first.text == (
        "0 * inf: the derivative of sqrt is infinite at 0, and the gradient that arrives is 0 "
        "(WhereBackward0 did not take this branch)"
    )
    assert first.operands == (("result", 0.0), ("gradient", 0.0))
    assert "where(ok, f(where(ok, x, 1)), 0)" in first.help
    assert x.grad is None
    x = fw.tensor([-1.0, 400.0], requires_grad=True)
    with gi.watch_nan() as watch:
        fw.where(x > 0, x, x.exp() - 1).sum().backward()
    first = watch.origin.first
    assert (first.name, first.direction, first.value) == ("exp", "forward", "Inf")
    assert "where(ok, f(where(ok, x, 1)), 0)" in first.help  # the other branch is chosen there, and meant
    x = fw.tensor([0.0, 4.0], requires_grad=True)
    safe = fw.where(x > 0, x, fw.ones(2))
    assert not gi.nan_origin(fw.where(x > 0, safe.sqrt(), fw.zeros(2)).sum())


BACKWARD = [
    ("sqrt", lambda x: x([0.0]).sqrt().sum(), "Inf", "the derivative of sqrt is infinite at 0"),
    ("pow", lambda x: (x([0.0]) ** 0.5).sum(), "Inf", "the derivative of x**p, p < 1, is infinite at 0"),
    ("asin", lambda x: x([1.0]).asin().sum(), "Inf", "the derivative of asin is infinite at 1"),
]


@pytest.mark.parametrize(("function", "value", "text"), [b[1:] for b in BACKWARD], ids=[b[0] for b in BACKWARD])
def test_backward(fw, function, value, text):
    loss = function(lambda values: fw.tensor(values, requires_grad=True))
    first = gi.nan_origin(loss).first
    assert (first.value, first.direction, first.text) == (value, "backward", text)


def test_causes_of_the_rarer_nodes():
    assert "norm is 0" in backward_cause("LinalgVectorNorm", 1.0, {"result": 0.0}, NAN, "").text
    assert "standard deviation is 0" in backward_cause("Std", 1.0, {"result": 0.0}, NAN, "").text
    assert "atan2(0, 0)" in backward_cause("Atan2", 1.0, {"self": 0.0, "other": 0.0}, NAN, "").text
    assert "overflow" in backward_cause("Mul", 1e30, {"other": 1e30}, INF, "").text
    assert "since the forward pass" in backward_cause("Exp", 1.0, {"result": INF}, INF, "").text


def test_the_chain_to_the_parameter(fw):
    w = fw.tensor([0.0], requires_grad=True)
    with gi.ledger():
        h = w * 2
        loss = h.sqrt().sum()
    origin = gi.nan_origin(loss, params={"w": w})
    assert [step.name for step in origin.first.chain] == ["MulBackward0", "AccumulateGrad of `w`"]
    assert origin.parameters == ("`w`",)


def test_a_gradient_that_enters_bad(fw):
    w = fw.tensor([1.0], requires_grad=True)
    first = gi.nan_origin((w * 2).sum(), grad=fw.tensor(NAN)).first
    assert first.text.startswith("the gradient arrived with it")


def test_the_model_is_named(fw):
    class Root(fw.nn.Module):
        def forward(self, x):
            return x.sqrt()

    model = fw.nn.Sequential(fw.nn.Linear(2, 2, bias=False), Root())
    with fw.no_grad():
        model[0].weight.zero_()
    with gi.watch_nan() as watch:
        model(fw.ones(1, 2)).sum().backward()
    first = watch.origin.first
    assert (first.name, first.module) == ("SqrtBackward0", "1")
    assert watch.origin.parameters == ("`0.weight`",)


def test_stop_raises_where_it_happens(fw):
    def program():
        y = fw.tensor([-1.0]).log()  # HERE: stops
        y.exp()

    with pytest.raises(FloatingPointError, match="log of a negative number") as raised, gi.watch_nan(stop=True):
        program()
    assert raised.traceback[1].lineno + 1 == line(__file__, "stops")


def test_when_it_was_first_seen(fw):
    def steps(function):
        for value in (2.0, 1.0, 0.0, 0.0):
            function(fw.tensor([value], requires_grad=True)).sum().backward()

    found = watched(lambda: steps(lambda x: x.log())).first
    assert (found.direction, found.backwards) == ("forward", 2)
    assert "\n  first seen before backward 3\n" in str(found)
    found = watched(lambda: steps(lambda x: x.sqrt())).first
    assert (found.direction, found.backwards) == ("backward", 3)
    assert "\n  first seen in backward 3\n" in str(found)


def test_an_operator_in_the_backward_of_a_custom_function(fw):
    class Norm(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.norm()
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return grad * x / y  # HERE: in a backward

    found = watched(lambda: Norm.apply(fw.zeros(2, requires_grad=True)).backward()).first
    assert (found.direction, found.name, found.location.lineno) == ("backward", "div", line(__file__, "in a backward"))


def test_a_product_of_finite_numbers_overflows(fw):
    scale = fw.tensor([1e25], requires_grad=True)
    found = watched(lambda: (fw.full((4,), 1e10) * scale).backward(fw.full((4,), 1e35))).first
    assert (found.name, found.value) == ("MulBackward0", "Inf")
    assert found.text.startswith("overflow: ")


def test_stop_lets_a_nan_pass_that_the_program_puts_there(fw):
    with gi.watch_nan(stop=True) as watch:
        fw.zeros(2).masked_fill(fw.tensor([True, False]), NAN)
    assert watch.origin.first.text == "the program puts it there"


def test_stop_raises_in_backward(fw):
    x = fw.tensor([0.0], requires_grad=True)
    loss = (x.sqrt() * 0).sum()
    with pytest.raises(FloatingPointError, match="SqrtBackward0") as raised, gi.watch_nan(stop=True):
        loss.backward()
    assert "loss.backward()" in "".join(traceback.format_exception(raised.value))


def test_nothing_to_find(fw):
    x = fw.tensor([1.0], requires_grad=True)
    origin = gi.nan_origin((x * 2).sum())
    assert (str(origin), bool(origin), origin.first) == ("No NaN and no Inf was produced.", False, None)


def test_a_freed_graph(fw):
    x = fw.tensor([1.0], requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="has been freed"):
        gi.nan_origin(loss)
    with pytest.raises(RuntimeError, match="no graph"):
        gi.nan_origin(fw.ones(1).sum())


def test_forms(fw):
    origin = watched(lambda: fw.tensor([0.0]).log())
    data = json.loads(origin.to_json())
    assert (data["producers"][0]["text"], data["producers"][0]["operands"]) == ("log of 0", [["input 0", 0.0]])
    assert origin.table().row_count == 1


@pytest.mark.parametrize(
    "mix",
    [
        lambda fw, x: x.reshape(2, 2).softmax(1),
        lambda fw, x: x.reshape(2, 2) @ fw.ones(2, 2),
        lambda fw, x: x.cumsum(0),
    ],
    ids=["softmax", "matmul", "cumsum"],
)
def test_who_mixes_elements_only_passes_on(fw, mix):
    w = fw.tensor([1.0, 1.0, 1.0, 1.0], requires_grad=True)
    y = mix(fw, w)
    loss = (y.reshape(-1) - y.detach().reshape(-1)).sqrt()[3:].sum()
    origin = gi.nan_origin(loss)
    assert [b.name for b in origin.producers] == ["SqrtBackward0"]
    data = fw.tensor([1.0, 1.0, 1.0, NAN])
    assert [b.name for b in watched(lambda: mix(fw, data)).producers] == ["the input"]


def test_one_operator_can_pass_on_and_produce(fw):
    x = fw.tensor([NAN, -1.0])
    producers = watched(lambda: (x * 1).log()).producers
    assert [(b.name, b.element) for b in producers] == [("the input", (0,)), ("log", (1,))]


# --- random programs --------------------------------------------------------------------------------------------------


@st.composite
def programs(draw):
    """Return the operations of a random DAG, (name, operand, operand), and at which of them NaN is made."""
    size = draw(st.integers(2, 12))
    steps = []
    for i in range(size):
        name = draw(st.sampled_from(["tanh", "mul", "add", "where", "mean"]))
        steps.append((name, draw(st.integers(0, i)), draw(st.integers(0, i))))
    return steps, draw(st.integers(0, size - 1))


def run(steps, bad, broken):
    values = [gs.tensor([0.5, -0.25, 2.0], requires_grad=True)]
    for i, (name, a, b) in enumerate(steps):
        x, y = values[a], values[b]
        if name == "mul":
            made = x.tanh() * y.tanh()
        elif name == "add":
            made = x + 0.5 * y
        elif name == "where":
            made = gs.where(y > 0, x, y)
        elif name == "mean":
            made = x - y.mean()
        else:
            made = x.tanh()
        values.append(broken(made) if i == bad else made)
    return sum((v.sum() for v in values), gs.zeros(()))


@settings(max_examples=25)
@given(programs())
def test_the_origin_of_a_nan_put_at_random_is_found_in_forward(program):
    steps, bad = program
    origin = watched(lambda: run(steps, bad, lambda v: (-1 - v * v).sqrt()))
    assert [b.name for b in origin.producers] == ["sqrt"]
    assert origin.first.text == "square root of a negative number"


class Broken(gs.autograd.Function):
    """The identity, whose derivative is NaN."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * NAN


@settings(max_examples=25)
@given(programs())
def test_the_origin_of_a_nan_put_at_random_is_found_in_backward(program):
    steps, bad = program
    loss = run(steps, bad, Broken.apply)
    origin = gi.nan_origin(loss)
    assert [b.name for b in origin.producers] == ["BrokenBackward"]
    live = watched(loss.backward)
    assert "BrokenBackward" in [b.name for b in live.producers]


# --- what comes after -------------------------------------------------------------------------------------------------


def test_what_a_poisoned_parameter_does_afterwards_is_not_told(fw):
    w = fw.ones(3, requires_grad=True)
    optimizer = fw.optim.SGD([w], lr=0.1)
    with gi.watch_nan() as watch:
        for _ in range(3):
            optimizer.zero_grad()
            ((w * 0).sqrt() * 0).sum().backward()  # HERE: poisoned
            optimizer.step()
    assert [(b.direction, b.name) for b in watch.origin.producers] == [("backward", "SqrtBackward0")]
    assert watch.origin.first.location.lineno == line(__file__, "poisoned")


def test_a_nan_in_the_data_is_told_also_where_the_model_is_healthy(fw):
    model = fw.nn.Linear(3, 1)
    x = fw.full((2, 3), float("nan"))
    with gi.watch_nan() as watch:
        model(x).sum().backward()
    assert watch.origin.first.name == "the input"


def test_a_logarithm_close_to_zero(fw):
    p = fw.tensor([1e-42, 0.5], requires_grad=True)
    found = gi.nan_origin(p.log().sum()).first
    assert found.text == "overflow: the derivative of log at 1e-42 is too large for its dtype"
    assert "log_softmax()" in found.help


def test_a_saved_tensor_that_was_bad_elsewhere(fw):
    weight = fw.ones(1, 2, requires_grad=True)
    x = fw.tensor([[1.0, 2.0], [float("nan"), 1.0]])
    loss = fw.nn.functional.linear(x, weight)[0].sum()
    found = gi.nan_origin(loss).first
    assert "has had a NaN or an infinity in it since the forward pass" in found.text


def test_an_overflow_inside_a_product_of_matrices():
    a = numpy.full((1, 4), 1e30, numpy.float32)
    with numpy.errstate(all="ignore"):
        found = forward_cause("linear", [a, a], numpy.full((1, 1), numpy.nan, numpy.float32), (0, 0))
    assert found.text == "overflow inside: products of values as large as 1e+30, and inf - inf is NaN"


def test_a_table_that_is_computed_whole_to_be_cut(fw):
    """As T5's distances between positions: the logarithm of 0 is never used."""
    w = fw.ones(3, requires_grad=True)
    with gi.Doctor() as doctor:
        distance = fw.tensor([0, 1, 8])
        far = (distance.float().log() * 2).to(fw.int64)
        (fw.where(distance < 2, distance, far).float() * w).sum().backward()
    origin = doctor.diagnosis.nan
    assert (origin.first.name, origin.first.harmless) == ("log", True)
    assert doctor.diagnosis.symptoms == ()


def test_what_leads_nowhere_comes_after_what_is_wrong(fw):
    def program():
        fw.tensor([0.0, 1.0]).log().to(fw.int64)
        fw.tensor([0.0, 4.0], requires_grad=True).sqrt().sum().backward()

    producers = watched(program).producers
    assert [(producer.name, producer.harmless) for producer in producers] == [("SqrtBackward0", False), ("log", True)]


def test_what_is_computed_from_a_bad_gradient_is_no_bad_data(fw):
    x = fw.tensor([0.0, 4.0], requires_grad=True)

    def program():
        (x.sqrt() * 0).sum().backward()
        assert x.grad.norm().isnan()

    assert [producer.name for producer in watched(program).producers] == ["SqrtBackward0"]


@pytest.mark.parametrize(("exponent", "found"), [(40, ["NaN"]), (13, [])])
def test_a_step_that_a_grad_scaler_leaves_out(fw, exponent, found):
    """It begins with a scale that is too large, and is told of only where it never comes to one that fits."""
    model = fw.nn.Linear(4, 1)
    with fw.no_grad():
        model.weight.fill_(0.1)
        model.bias.zero_()
    optimizer, scaler = fw.optim.SGD(model.parameters(), lr=0.01), fw.amp.GradScaler("cpu", 2.0**exponent)
    with gi.Doctor() as doctor:
        for _ in range(6):
            with fw.autocast("cpu", dtype=fw.float16):
                loss = (model(fw.full((2, 4), 2.0)) - 8).pow(2).mean()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    assert scaler.get_scale() < 2.0**exponent
    assert [s.kind for s in doctor.diagnosis.symptoms] == found


@pytest.mark.torch
def test_a_view_of_what_nobody_has_written_is_no_bad_data():
    torch = pytest.importorskip("torch")
    torch.use_deterministic_algorithms(True)  # fills what is not written with NaN
    try:
        with gi.Doctor() as doctor:
            buffer = torch.empty(4)
            part = buffer.view(2, 2)[0]
            part.copy_(torch.tensor([float("nan"), 1.0]))
            (torch.ones(2, requires_grad=True) * part).sum().backward()
    finally:
        torch.use_deterministic_algorithms(False)
    (symptom,) = [s for s in doctor.diagnosis.symptoms if s.kind == "NaN"]
    assert symptom.location.source.startswith("part.copy_(")


@pytest.mark.torch
@pytest.mark.parametrize("written", [0.0, 1e6])
def test_a_number_that_is_written_into_a_part_does_not_make_the_rest_of_it_bad(written):
    torch = pytest.importorskip("torch")
    buffer = torch.full((2, 3), NAN, dtype=torch.float16)  # nobody has seen it being made
    with gi.watch_nan() as watch:
        buffer.data[0] = torch.full((3,), written)
    # float16 ends at 65504.
    assert (watch.origin.first is None) == (written == 0.0)


@pytest.mark.parametrize("size", [1, 10, 40])
@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_a_glance_sees_what_is_not_finite_wherever_it_is(kind, size):
    whole = numpy.ones((size, 3), kind)
    for array in (whole, whole.T, whole[:, 0], whole[:, ::2], whole[0, 0], whole[:1, 0].reshape(())):
        assert all_finite([None, array])
        for bad in (numpy.nan, numpy.inf, -numpy.inf):
            spoilt = numpy.array(array)
            spoilt[(-1,) * spoilt.ndim] = bad
            assert not all_finite([array, spoilt])
    assert all_finite([numpy.arange(size), numpy.ones(size, bool)])
    assert not all_finite([numpy.ones(size, complex)])


def test_a_gradient_that_a_hook_writes_on_its_way_into_a_leaf_is_seen(fw):
    model = fw.nn.Linear(2, 1)
    model.weight.register_hook(lambda grad: grad.mul_(NAN))
    origin = watched(lambda: model(fw.ones(1, 2)).sum().backward())
    assert origin.parameters == ("`weight`",)


def test_a_gradient_that_a_hook_spoils_is_seen_though_its_node_made_it_well(fw):
    x = fw.ones(3, requires_grad=True)
    y = x.sin()
    y.register_hook(lambda grad: grad * float("nan"))
    with gi.watch_nan() as watch:
        y.sum().backward()
    text = "the gradient arrived with it: the loss is not finite, or a hook put it there"
    assert text in [producer.text for producer in watch.origin.producers]


# --- steps that are rejected ------------------------------------------------------------------------------------------


def found(program):
    with numpy.errstate(all="ignore"), gi.Doctor() as doctor:
        program()
    return [symptom.code for symptom in doctor.diagnosis.symptoms if symptom.code == "D302"]


def objective(w):
    return (w.log() * w).sum()


def line_search(fw, accepts, *, restore=True, tries=12):
    """Descend by steps that are too long at first."""
    w, step = fw.tensor([2.0, 3.0], requires_grad=True), 8.0
    loss = objective(w)
    (slope,) = fw.autograd.grad(loss, w)
    for _ in range(tries):
        old = w.detach().clone()
        with fw.no_grad():
            w.copy_(old - step * slope)
        new = objective(w)
        (there,) = fw.autograd.grad(new, w)
        if accepts(fw, new, loss):
            loss, slope = new, there
        elif restore:
            step /= 2
            with fw.no_grad():
                w.copy_(old)


@pytest.mark.parametrize("fw", [gs, pytest.param("torch", marks=pytest.mark.torch)])
def test_a_step_that_the_program_rejects_is_no_finding(fw):
    fw = pytest.importorskip(fw) if isinstance(fw, str) else fw
    assert not found(lambda: line_search(fw, lambda fw, new, old: fw.isfinite(new) and new < old))
    assert not found(lambda: line_search(fw, lambda fw, new, old: new < old))


@pytest.mark.parametrize("fw", [gs, pytest.param("torch", marks=pytest.mark.torch)])
def test_to_ask_and_to_go_on_with_it_all_the_same_is_a_finding(fw):
    fw = pytest.importorskip(fw) if isinstance(fw, str) else fw
    assert found(lambda: line_search(fw, lambda fw, new, old: new < old, restore=False)) == ["D302"]
    assert found(lambda: line_search(fw, lambda fw, new, old: True)) == ["D302"]


def test_where_an_optimizer_steps_a_loss_that_is_left_out_is_told_all_the_same():
    def program():
        w = gs.tensor([2.0, 3.0], requires_grad=True)
        optimizer = gs.optim.SGD([w], lr=0.01)
        for shift in (0.0, -9.0, 0.0):
            optimizer.zero_grad()
            loss = objective(w + shift)
            if gs.isfinite(loss):
                loss.backward()
                optimizer.step()

    assert found(program) == ["D302"]
