"""Each reason for a missing gradient, in a minimal program, with its line and sentence, on both frameworks."""

import gc
import json
import weakref

import pytest

import gradscope.inspect as gi
from gradscope.inspect.diagnosis.no_gradient.no_grad_reasons import Reason
from tests.inspect.diagnosis.lines import line


def leaf(fw, *shape):
    return fw.ones(*(shape or (3,)), requires_grad=True)


def check(found, reason, mark=None):
    assert found.reason is reason, str(found)
    if mark is not None:
        assert (found.location.filename, found.location.lineno) == (__file__, line(__file__, mark)), str(found)


# --- the way to the loss is lost -------------------------------------------------------------------------------------


def test_detached(fw):
    w, v = leaf(fw), leaf(fw)
    with gi.ledger():
        h = (w * 2).detach()  # HERE: detached
        loss = (h * v).sum()
    found = gi.why_no_grad(w, loss)
    check(found, Reason.DETACHED, "detached")
    assert f"not reached: detached at {found.location}".split(":")[0] in str(found)
    assert "h = (w * 2).detach()" in str(found)
    assert str(found).startswith("`w`: ")
    assert gi.why_no_grad(v, loss).reason is Reason.NOT_RUN


def cube_of(fw):
    class Cube(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            square = x * x  # HERE: square
            ctx.save_for_backward(3 * square)
            return square * x

        @staticmethod
        def backward(ctx, grad):
            (slope,) = ctx.saved_tensors
            return grad * slope

    return Cube


def test_a_custom_function_lets_gradients_through(fw):
    w, cube = leaf(fw), cube_of(fw)
    with gi.ledger():
        h = cube.apply(cube.apply(w * 2))
        loss = (h.detach() * leaf(fw)).sum()  # HERE: after
    check(gi.why_no_grad(w, loss), Reason.DETACHED, "after")


def backwards_of_none(fw):
    class Forgotten(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            grad * 2

    class OfOne(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        @fw.autograd.function.once_differentiable
        def backward(ctx, grad):
            return grad, None  # HERE: given none

    return Forgotten, OfOne


def test_a_backward_that_returns_none(fw):
    _, of_one = backwards_of_none(fw)
    w, v = leaf(fw), leaf(fw)
    with gi.ledger():
        loss = of_one.apply(v, w * 2).sum()
        loss.backward()
    found = gi.why_no_grad(w, loss)
    check(found, Reason.WITHHELD, "given none")
    assert "reached, but OfOne.backward returned None for it at " in found.message
    assert found.help == "forward() takes x, y: return a gradient for each that wants one."
    assert gi.why_no_grad(v, loss).reason is Reason.HAS_GRADIENT


def test_a_backward_without_a_return(fw):
    forgotten, _ = backwards_of_none(fw)
    w = leaf(fw)
    with gi.ledger():
        loss = forgotten.apply(w).sum()  # HERE: forgotten return
        loss.backward()
    found = gi.why_no_grad(w, loss)
    check(found, Reason.WITHHELD, "forgotten return")
    assert "reached, but Forgotten.backward has no return statement, which gives None; it was used at " in str(found)


def test_what_backward_was_not_asked_for_was_not_withheld(fw):
    _, of_one = backwards_of_none(fw)
    w, v = leaf(fw), leaf(fw)
    with gi.ledger():
        loss = of_one.apply(w * 2, v * 1).sum()
        loss.backward(inputs=[v])
    assert gi.why_no_grad(w, loss).reason is not Reason.WITHHELD


def test_a_backward_of_none_that_nobody_watched(fw):
    _, of_one = backwards_of_none(fw)
    w, v = leaf(fw), leaf(fw)
    loss = of_one.apply(v, w * v).exp().sum()
    loss.backward()
    found = gi.why_no_grad(w, loss)
    check(found, Reason.CLEARED)
    assert "cleared since, taken by autograd.grad(), or None from the backward of `OfOne`" in found.message


def test_what_a_custom_function_saved_was_not_recorded():
    import gradscope as fw

    w, v = leaf(fw), leaf(fw)
    with gi.ledger():
        (slope,) = fw.autograd.grad(cube_of(fw).apply(v * w).sum(), v, create_graph=True)
        loss = (slope - w).sum() - (slope / w.detach()).sum()
    found = gi.why_no_grad(v, loss)
    check(found, Reason.NO_GRAD, "square")
    assert "mul ran in Cube.forward(), which is not recorded" in found.message
    assert found.help == "Save its inputs and outputs alone, and compute the rest in backward()."


def test_no_grad(fw):
    w, v = leaf(fw), leaf(fw)
    with gi.ledger():
        with fw.no_grad():
            h = w * 2  # HERE: no_grad
        loss = (h + v).sum()
    found = gi.why_no_grad(w, loss)
    check(found, Reason.NO_GRAD, "no_grad")
    assert "mul ran under no_grad" in found.message


def test_the_block_that_turned_recording_off(fw):
    w = leaf(fw)
    with gi.ledger():
        with fw.no_grad():  # HERE: block
            first = w * 2
            loss = (first + leaf(fw)).sum()
    found = gi.why_no_grad(w, loss)
    assert found.help == f"Move it out of the no_grad() block that begins at line {line(__file__, 'block')}."


def test_recording_that_was_turned_off_elsewhere(fw):
    def evaluate():
        fw.set_grad_enabled(False)  # HERE: switched

    w = leaf(fw)
    with gi.ledger():
        try:
            evaluate()
            loss = (w * 2).sum()
        finally:
            fw.set_grad_enabled(True)
    found = gi.why_no_grad(w, loss)
    assert found.reason is Reason.NO_GRAD
    assert [s.location.lineno for s in found.suspects if s.location.filename == __file__] == [
        line(__file__, "switched")
    ]
    assert "turns recording off for all that follows" in str(found)


@pytest.mark.torch
def test_a_reentrant_checkpoint_without_an_input_that_requires_grad():
    torch = pytest.importorskip("torch", reason="it is a function of PyTorch")
    from torch.utils.checkpoint import checkpoint

    layer, head = torch.nn.Linear(3, 3), leaf(torch)
    with gi.ledger():
        with pytest.warns(UserWarning, match="None of the inputs"):
            hidden = checkpoint(layer, torch.ones(1, 3), use_reentrant=True)  # HERE: checkpoint
        loss = (hidden * head).sum()
    found = gi.why_no_grad(layer.weight, loss)
    check(found, Reason.NO_GRAD, "checkpoint")
    assert "use_reentrant=False" in found.help


@pytest.mark.torch
def test_a_reentrant_checkpoint_lets_gradients_through():
    torch = pytest.importorskip("torch")
    from torch.utils.checkpoint import checkpoint

    w = leaf(torch)
    with gi.ledger():
        h = checkpoint(lambda x: x * w, leaf(torch), use_reentrant=True)
        loss = (h.detach() * leaf(torch)).sum()  # HERE: after the checkpoint
    check(gi.why_no_grad(w, loss), Reason.DETACHED, "after the checkpoint")


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
def test_a_tensor_made_of_tensors(fw):
    w, v = leaf(fw), leaf(fw)
    with gi.ledger():
        copied = fw.tensor(w * 2)  # HERE: copied
        loss = (copied * v).sum()
    found = gi.why_no_grad(w, loss)
    check(found, Reason.OUTSIDE, "copied")
    assert "tensor() copies the values into a tensor without history" in found.message


def test_the_source_tells_what_a_ledger_does_not_see(fw):
    w, v = leaf(fw, 1), leaf(fw)
    with gi.ledger():
        number = (w * 2).sum().item()  # HERE: number
        loss = (v * number).sum()
    found = gi.why_no_grad(w, loss)
    assert found.reason is Reason.NOT_IN_LOSS
    assert [s.location.lineno for s in found.suspects] == [line(__file__, "number")]


def test_argmax(fw):
    w, v = leaf(fw, 2, 3), leaf(fw, 2)
    with gi.ledger():
        best = w.argmax(1)  # HERE: argmax
        loss = (best * v).sum()
    found = gi.why_no_grad(w, loss)
    check(found, Reason.NOT_DIFFERENTIABLE, "argmax")
    assert "argmax gives integers or booleans" in found.message
    assert "softmax" in found.help


def test_comparison_used_as_a_mask(fw):
    w, v = leaf(fw), leaf(fw)
    with gi.ledger():
        mask = w > 0.5  # HERE: comparison
        loss = (mask * v).sum()
    check(gi.why_no_grad(w, loss), Reason.NOT_DIFFERENTIABLE, "comparison")


def test_cast_to_integers(fw):
    w, v = leaf(fw), leaf(fw)
    with gi.ledger():
        loss = (w.long() * v).sum()  # HERE: cast
    check(gi.why_no_grad(w, loss), Reason.NOT_DIFFERENTIABLE, "cast")


@pytest.mark.parametrize("used_before", [False, True])
def test_data(fw, used_before):
    w, v = leaf(fw), leaf(fw)
    with gi.ledger():
        if used_before:
            w.exp()
        loss = (w.data * v).sum()  # HERE: data
    found = gi.why_no_grad(w, loss)
    check(found, Reason.OUTSIDE, "data")
    assert "`.data` or NumPy" in found.message


def test_numpy(fw):
    w, v = leaf(fw), leaf(fw)
    with gi.ledger():
        values = fw.from_numpy(w.detach().numpy())
        loss = (values * v).sum()  # HERE: numpy
    check(gi.why_no_grad(w, loss), Reason.OUTSIDE, "numpy")


def test_the_first_loss_on_the_way_is_told(fw):
    w, v = leaf(fw), leaf(fw)
    with gi.ledger():
        a = w.detach()  # HERE: first
        with fw.no_grad():
            b = a * 3
        loss = (b * v).sum()
    check(gi.why_no_grad(w, loss), Reason.DETACHED, "first")


def test_two_ways_are_both_told(fw):
    w, v = leaf(fw), leaf(fw)
    with gi.ledger():
        a = w.detach()  # HERE: way one
        b = (w * 2).detach()  # HERE: way two
        loss = (a + b + v).sum()
    found = gi.why_no_grad(w, loss)
    assert [p.lineno for p in found.locations] == [line(__file__, "way one"), line(__file__, "way two")]


def test_through_an_inplace_write_into_a_view(fw):
    w, v = leaf(fw), leaf(fw, 2, 3)
    with gi.ledger():
        buffer = fw.zeros(2, 3)
        buffer[0] = w.detach()  # HERE: written
        loss = (buffer * v).sum()
    check(gi.why_no_grad(w, loss), Reason.DETACHED, "written")


def test_a_recorded_way_is_reached(fw):
    w, v = leaf(fw), leaf(fw, 2, 3)
    with gi.ledger():
        buffer = fw.zeros(2, 3)
        buffer[0] = w * 2
        loss = (buffer * v).sum()
    assert gi.why_no_grad(w, loss).reason is Reason.NOT_RUN
    loss.backward()
    assert gi.why_no_grad(w, loss).reason is Reason.HAS_GRADIENT


# --- not used ---------------------------------------------------------------------------------------------------------


def test_unused(fw):
    w, v = leaf(fw), leaf(fw)
    with gi.ledger():
        loss = (v * 2).sum()
    found = gi.why_no_grad(w, loss)
    check(found, Reason.UNUSED)
    assert "no operator has used it" in str(found)


def test_used_but_not_in_the_loss(fw):
    w, v = leaf(fw), leaf(fw)
    with gi.ledger():
        scale = w.sum().item()  # HERE: item
        loss = (v * scale).sum()
    found = gi.why_no_grad(w, loss)
    check(found, Reason.NOT_IN_LOSS, "item")
    assert "item()" in found.help


def test_initialising_a_parameter_is_no_use(fw):
    w, v = leaf(fw), leaf(fw)
    with gi.ledger():
        with fw.no_grad():
            w.fill_(2.0)
        loss = v.sum()
    assert gi.why_no_grad(w, loss).reason is Reason.UNUSED


def model_of(fw):
    class Model(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = fw.nn.Linear(3, 4)
            self.head = fw.nn.Linear(4, 1)
            self.spare = fw.nn.Linear(4, 1)

        def forward(self, x):
            hidden = self.body(x)
            return self.head(hidden.detach())  # HERE: in a model

    return Model()


def test_a_module(fw):
    model = model_of(fw)
    with gi.ledger():
        loss = model(fw.ones(2, 3)).sum()
    loss.backward()
    report = gi.why_no_grad(model, loss)
    reasons = {entry.name: entry.reason for entry in report.parameters}
    assert reasons == {
        "body.weight": Reason.DETACHED,
        "body.bias": Reason.DETACHED,
        "head.weight": Reason.HAS_GRADIENT,
        "head.bias": Reason.HAS_GRADIENT,
        "spare.weight": Reason.UNUSED_MODULE,
        "spare.bias": Reason.UNUSED_MODULE,
    }
    text = str(report).splitlines()
    assert text[0] == "4 of 6 parameters without a gradient:"
    assert text[1].startswith("  `body.weight`, `body.bias`: not reached: detached at ")
    assert text[3] == "  `spare.weight`, `spare.bias`: not reached: its module `spare` (Linear) was never called"
    assert report.parameters[0].location.lineno == line(__file__, "in a model")
    assert gi.why_no_grad(model.body.weight, loss, params=model).name == "body.weight"


def test_all_is_well(fw):
    model = fw.nn.Linear(3, 1)
    loss = model(fw.ones(2, 3)).sum()
    loss.backward()
    assert str(gi.why_no_grad(model, loss)) == "All 2 parameters have a gradient."


# --- the tensor itself ------------------------------------------------------------------------------------------------


def test_frozen(fw):
    w = leaf(fw).requires_grad_(False)
    loss = (w * leaf(fw)).sum()
    assert gi.why_no_grad(w, loss).reason is Reason.FROZEN


def test_a_result_that_lost_its_history(fw):
    w = leaf(fw)
    with gi.ledger():
        h = (w * 2).detach()  # HERE: result
        loss = (h * leaf(fw)).sum()
    check(gi.why_no_grad(h, loss), Reason.DETACHED, "result")


def test_a_loss_that_was_made_a_leaf(fw):
    model = fw.nn.Linear(3, 1)
    with gi.ledger():
        loss = model(fw.ones(2, 3)).detach().sum()  # HERE: leaf loss
        loss.requires_grad = True
        loss.backward()
    check(gi.why_no_grad(model.weight, loss), Reason.DETACHED, "leaf loss")


def test_not_a_leaf(fw):
    w = leaf(fw, 2, 3)
    with gi.ledger():
        h = w.sum(1)  # HERE: non-leaf
        loss = h.sum()
    found = gi.why_no_grad(h, loss)
    check(found, Reason.NON_LEAF, "non-leaf")
    assert "retain_grad()" in found.help


def test_a_result_that_retains_its_gradient(fw):
    h = leaf(fw).sum()
    h.retain_grad()
    loss = h * 2
    loss.backward()
    assert gi.why_no_grad(h, loss).reason is Reason.HAS_GRADIENT


def test_a_new_tensor_bound_over_a_leaf(fw):
    w = leaf(fw)
    with gi.ledger():
        w = w * 2  # HERE: rebound
        loss = w.sum()
    found = gi.why_no_grad(w, loss)
    check(found, Reason.REBOUND, "rebound")
    assert "MulBackward0" in found.message


def test_a_parameter_replaced_after_the_forward_pass(fw):
    model = fw.nn.Linear(3, 1)
    with gi.ledger():
        loss = model(fw.ones(2, 3)).sum()
        model.weight = fw.nn.Parameter(model.weight.detach() * 2)  # HERE: replaced
    found = gi.why_no_grad(model.weight, loss, params=model)
    check(found, Reason.REBOUND, "replaced")


# --- reached ----------------------------------------------------------------------------------------------------------


def test_backward_not_called(fw):
    w = leaf(fw)
    assert gi.why_no_grad(w, (w * w).sum()).reason is Reason.NOT_RUN
    assert gi.why_no_grad(w).reason is Reason.NOT_RUN


def test_cleared(fw):
    w = leaf(fw)
    with gi.ledger():
        loss = (w * w).sum()
        loss.backward()  # HERE: filled
    w.grad = None
    check(gi.why_no_grad(w, loss), Reason.CLEARED, "filled")


def test_autograd_grad(fw):
    w = leaf(fw)
    with gi.ledger():
        loss = (w * w).sum()
        fw.autograd.grad(loss, [w])  # HERE: grad
    check(gi.why_no_grad(w, loss), Reason.AUTOGRAD_GRAD, "grad")


def test_run_without_a_ledger(fw):
    w = leaf(fw)
    loss = (w * w).sum()
    loss.backward()
    w.grad = None
    assert gi.why_no_grad(w, loss).reason is Reason.CLEARED


def test_without_a_ledger_the_way_there_is_told(fw):
    w = leaf(fw)
    found = gi.why_no_grad(w, (w.detach() * leaf(fw)).sum())
    assert found.reason is Reason.NOT_REACHED
    assert "gradscope.inspect.ledger()" in found.help
    with fw.no_grad():
        loss = w.sum()
    assert gi.why_no_grad(w, loss).reason is Reason.NO_GRAPH


# --- zero -------------------------------------------------------------------------------------------------------------

ZEROS = [
    ("relu", lambda fw, w: (w - 5).relu(), "the ReLU is not active for any of its 3 inputs"),
    ("mul", lambda fw, w: w * fw.zeros(3), "multiplied by zero (the other operand is zero everywhere)"),
    ("where", lambda fw, w: fw.where(w > 5, w, fw.ones(3)), "where selects none of its elements"),
    ("mask", lambda fw, w: w.masked_fill(w > 0, 0.0), "maskedfill selects none of its elements"),
    ("round", lambda fw, w: w.round(), "round is a step function"),
    ("clamp", lambda fw, w: w.clamp(max=-1), "outside the range of clamp"),
]


@pytest.mark.parametrize(("function", "text"), [z[1:] for z in ZEROS], ids=[z[0] for z in ZEROS])
def test_zero(fw, function, text):
    w, v = leaf(fw), leaf(fw)
    with gi.ledger():
        loss = (function(fw, w) * 2 + v).sum()
    loss.backward(retain_graph=True)
    found = gi.why_no_grad(w, loss)
    assert found.reason is Reason.ZERO
    assert text in found.message
    assert gi.why_no_grad(v, loss).reason is Reason.HAS_GRADIENT


def test_zero_after_the_graph_has_gone(fw):
    w = leaf(fw)
    loss = (w - 5).relu().sum()
    loss.backward()
    found = gi.why_no_grad(w, loss)
    assert found.reason is Reason.ZERO
    assert "retain_graph=True" in found.help


def test_contributions_that_cancel(fw):
    w = leaf(fw)
    loss = (w - w).sum()
    loss.backward(retain_graph=True)
    assert "cancel" in gi.why_no_grad(w, loss).message


def test_a_broadcast_operand_whose_contributions_cancel(fw):
    w = fw.zeros(1, requires_grad=True)
    loss = ((w + fw.ones(2)) * fw.tensor([1.0, -1.0])).sum()
    loss.backward(retain_graph=True)
    message = gi.why_no_grad(w, loss).message
    assert "cancel" in message
    assert "Add" not in message


# --- the object, and what it costs ------------------------------------------------------------------------------------


def test_forms(fw):
    w, v = leaf(fw), leaf(fw)
    with gi.ledger():
        loss = (w.detach() * v).sum()
    found = gi.why_no_grad(w, loss)
    data = json.loads(found.to_json())
    assert (data["kind"], data["reason"], data["locations"][0]["filename"]) == ("NoGradient", "detached", __file__)
    assert data["text"] == str(found)
    table = found.table()
    assert (table.row_count, table.columns[2].header) == (1, "reason")
    assert gi.why_no_grad(fw.nn.Linear(3, 1), loss).table().row_count == 2
    with pytest.raises(AttributeError, match="cannot assign"):
        found.name = "other"


def test_bad_input(fw):
    w = leaf(fw)
    with pytest.raises(TypeError, match=r"loss must be a tensor, got float"):
        gi.why_no_grad(w, 1.5)
    with pytest.raises(TypeError, match="tensor"):
        gi.why_no_grad("w", w.sum())
    with pytest.raises(ValueError, match="limit"):
        gi.ledger(limit=0)


def test_a_ledger_opens_once():
    with gi.ledger() as ledger, pytest.raises(RuntimeError, match="open already"):
        ledger.__enter__()


def test_the_ledger_keeps_no_tensor(fw):
    w = leaf(fw)
    with gi.ledger() as ledger:
        h = w * 2
        gone = weakref.ref(h)
        loss = h.exp().sum()
        del h, loss
        gc.collect()
        assert gone() is None
    assert len(ledger.recorder._by_id) <= 1


def test_the_ledger_is_bounded(fw):
    w = leaf(fw)
    with gi.ledger(limit=50) as ledger:
        h = w
        for _ in range(200):
            h = h * 1.0
    assert len(ledger.recorder._log) == 50
    assert len(ledger.recorder.entry_of(h).ancestors()) <= 51


def test_numbers_are_the_same_with_and_without(fw):
    def train():
        fw.manual_seed(0)
        model = fw.nn.Sequential(fw.nn.Linear(3, 4), fw.nn.Tanh(), fw.nn.Linear(4, 1))
        optimizer = fw.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(5):
            loss = (model(fw.ones(2, 3)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [p.detach().numpy().tobytes() for p in model.parameters()]

    plain = train()
    with gi.ledger():
        watched = train()
    assert watched == plain
