"""Grad modes, inference mode, anomaly mode; as in PyTorch."""

from __future__ import annotations

import threading
import warnings

import numpy
import pytest

import gradscope as gs
from tests.autograd.compare import Programs, custom, leaf

program = Programs()


# --- recording or not -------------------------------------------------------------------------------------------------


@program(returns=[True, False, True, False, True])
def no_grad_and_enable_grad(m):
    x = leaf(m)
    seen = [(x * 2).requires_grad]
    with m.no_grad():
        seen.append((x * 2).requires_grad)
        with m.enable_grad():
            seen.append((x * 2).requires_grad)
        seen.append(m.is_grad_enabled())
    seen.append(m.is_grad_enabled())
    return seen


@program(returns=[False, True, False, True])
def set_grad_enabled(m):
    seen = []
    m.set_grad_enabled(False)
    seen.append(m.is_grad_enabled())
    m.set_grad_enabled(True)
    seen.append(m.is_grad_enabled())
    with m.set_grad_enabled(False):
        seen.append(m.is_grad_enabled())
    seen.append(m.is_grad_enabled())
    return seen


@program(returns=[[False, False, False, False, True], [False, False, False, True, False], "called", True])
def decorators(m):
    @m.no_grad()
    def called(x):
        return x * 2

    @m.no_grad
    def bare(x):
        return x * 2

    @m.set_grad_enabled(False)
    def set_off(x):
        return x * 2

    @m.inference_mode()
    def inferred(x):
        return x * 2

    @m.no_grad()
    @m.enable_grad()
    def back_on(x):
        return x * 2

    x = leaf(m)
    results = [f(x) for f in (called, bare, set_off, inferred, back_on)]
    return [r.requires_grad for r in results], [r.is_inference() for r in results], called.__name__, m.is_grad_enabled()


@program(returns=[False, True, ["sent", False], True])
def a_decorated_generator(m):
    @m.no_grad()
    def generate(x):
        got = yield (x * 2).requires_grad
        yield got, (x * 2).requires_grad

    x = leaf(m)
    steps = generate(x)
    first = next(steps)
    between = (x * 2).requires_grad
    return first, between, steps.send("sent"), m.is_grad_enabled()


@program(returns=[["caught", False], ["closed", False], True])
def a_decorated_generator_is_thrown_at_and_closed(m):
    seen = []

    @m.no_grad()
    def generate():
        try:
            yield "first"
        except ValueError:
            yield "caught", m.is_grad_enabled()
        try:
            yield "second"
        finally:
            seen.append(("closed", m.is_grad_enabled()))

    steps = generate()
    next(steps)
    caught = steps.throw(ValueError())
    next(steps)
    steps.close()
    return caught, seen[0], m.is_grad_enabled()


@program(returns=[[True, False], [True, False]])
def modes_end_with_an_exception(m):
    seen = []
    for mode in (m.no_grad, m.inference_mode):
        try:
            with mode():
                raise ValueError
        except ValueError:
            seen.append((m.is_grad_enabled(), m.is_inference_mode_enabled()))
    return seen


@program(returns=[True, True, False, True])
def factories_and_requires_grad_under_no_grad(m):
    with m.no_grad():
        x = leaf(m)
        y = m.ones(2).requires_grad_()
        z = x * 2
    return x.requires_grad, y.requires_grad, z.requires_grad, z.is_leaf


@program(returns=[True])
def modes_belong_to_a_thread(m):
    seen = []
    with m.no_grad():
        thread = threading.Thread(target=lambda: seen.append(m.is_grad_enabled()))
        thread.start()
        thread.join()
    return seen


@program(returns=[2, True, [3.0, 5.0, 7.0]])
def in_place_under_no_grad_bumps_the_version(m):
    x = leaf(m)
    with m.no_grad():
        x.mul_(2)
        x.add_(1)
    return x._version, x.is_leaf, x


@program(raises=(RuntimeError, "A view was created in no_grad mode and is being modified inplace with grad mode"))
def a_view_of_no_grad_written_with_grad(m):
    x = leaf(m) * 1
    with m.no_grad():
        v = x[:2]
    v.mul_(2)


# --- inference mode ---------------------------------------------------------------------------------------------------


@program(returns=[True, False, False, True, False, [True, False], False, False, False])
def inference_tensors(m):
    x = leaf(m)
    with m.inference_mode():
        y = x * 2
        z = x[:2]
        inner = m.is_inference_mode_enabled(), m.is_grad_enabled()
        with m.inference_mode(False):
            normal = m.ones(2)
    return (
        y.is_inference(),
        y.requires_grad,
        z.is_inference(),
        z.requires_grad,
        normal.is_inference(),
        inner,
        m.is_inference_mode_enabled(),
        (y + 1).is_inference(),
        y.clone().is_inference(),
    )


@program(returns=[[True, False, True], True, [False, True], False, True])
def enabling_gradients_in_inference_mode_records_nothing(m):
    x = leaf(m)
    with m.inference_mode():
        with m.enable_grad():
            inner = m.is_grad_enabled(), (x * 2).requires_grad, (x * 2).is_inference()
        with m.set_grad_enabled(True):
            settled = m.is_grad_enabled()
        with m.enable_grad():
            with m.no_grad():
                nested = [m.is_grad_enabled()]
            nested.append(m.is_grad_enabled())
        after = m.is_grad_enabled()
    return inner, settled, nested, after, m.is_grad_enabled()


@program(returns=[[2.0, 4.0, 6.0], [4.0, 8.0, 12.0], False, True])
def a_gradient_with_a_history_is_not_written_in_inference_mode(m):
    x = m.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (x * x).sum().backward(create_graph=True)
    before, loss = x.grad, (x * x).sum()
    with m.inference_mode():
        loss.backward(create_graph=True, inputs=[x])
    return before.tolist(), x.grad.tolist(), x.grad.requires_grad, x.grad.is_inference()


@program(returns=[True, True, True, True, [8.0, 16.0, 24.0]])
def gradients_that_are_made_in_inference_mode_are_inference_tensors(m):
    x = leaf(m)
    y, seen = x * x, []
    loss = y.sum()
    y.retain_grad()
    y.register_hook(lambda g: seen.append(g.is_inference()))
    with m.inference_mode():
        loss.backward(retain_graph=True)
        taken = m.autograd.grad(loss, [x], retain_graph=True)[0].is_inference()
        first, retained = x.grad, y.grad
        loss.backward(retain_graph=True)
    loss.backward(m.tensor(2.0), create_graph=True)
    return first.is_inference(), taken, seen[0], retained.is_inference(), x.grad


@program(raises=(RuntimeError, "Inplace update to inference tensor outside InferenceMode is not allowed."))
def a_gradient_made_in_inference_mode_is_not_added_to_outside(m):
    x = leaf(m)
    with m.inference_mode():
        x.backward(m.ones(3))
    (x * x).sum().backward()


@program(raises=(RuntimeError, "Inference tensors cannot be saved for backward."))
def an_inference_tensor_is_not_saved(m):
    with m.inference_mode():
        y = m.ones(3)
    leaf(m) * y


@program(raises=(RuntimeError, "Inference tensors cannot be saved for backward."))
def nor_by_a_function(m):
    with m.inference_mode():
        y = m.ones(3)
    custom(m, lambda ctx, x, y: ctx.save_for_backward(y) or x * 2, lambda ctx, g: (g, None)).apply(leaf(m), y)


@program(raises=(RuntimeError, "Inference tensors do not track version counter."))
def an_inference_tensor_has_no_version(m):
    with m.inference_mode():
        y = m.ones(3)
    y._version


@program(raises=(RuntimeError, "Inplace update to inference tensor outside InferenceMode is not allowed."))
def an_inference_tensor_is_not_written_outside(m):
    with m.inference_mode():
        y = m.ones(3)
    y.add_(leaf(m))


@program(returns=[True, True, True, [True, False], [True, False], [True, False]])
def writes_and_views_leave_an_inference_tensor_one(m):
    with m.inference_mode():
        y = m.ones(2, 3, requires_grad=True)
        z, t, plain = m.ones(3), m.ones(2, 3), m.ones(2, 3)
        z.unsqueeze_(0), t.t_(), plain.add_(1)
    views = [y.view(-1), y[0], y.unbind()[0]]
    return [
        *(tensor.is_inference() for tensor in (z, t, plain)),
        *([view.is_inference(), view.requires_grad] for view in views),
    ]


@program(returns=[[True, False, True]] * 4)
def a_view_of_an_inference_tensor_is_one_and_no_view(m):
    with m.inference_mode():
        y = m.ones(3, 3)
    views = [y.view(-1), y.transpose(0, 1), y.permute(1, 0), y.swapaxes(0, 1)]
    return [[view.is_inference(), view.requires_grad, view.grad_fn is None] for view in views]


@program(returns=[True] * 7)
def whatever_makes_a_tensor_marks_it(m):
    array = numpy.ones(2)
    with m.inference_mode():
        made = [m.from_numpy(array), m.as_tensor(array), m.asarray([1.0]), m.from_dlpack(array), m.Tensor(2)]
        made += [m.Tensor([1.0]), made[0].new(2)]
    return [tensor.is_inference() for tensor in made]


@program(raises=(RuntimeError, "A view was created in inference mode and is being modified inplace in normal mode."))
def a_view_made_inside_is_not_written_outside(m):
    x = leaf(m) * 1
    with m.inference_mode():
        view = x[:2]
    view.add_(1)


@program(raises=(RuntimeError, "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."))
def an_inference_tensor_is_not_made_to_require_grad(m):
    with m.inference_mode():
        y = m.ones(3)
    y.requires_grad = True


@program(returns=[False, False, 3, [6.0, 3.0], True, [12.0, 6.0]])
def normal_tensors_stay_normal_in_inference_mode(m):
    x = m.ones(2)
    with m.inference_mode():
        x.add_(1)
        x[0] = 5.0
        detached = x.detach()
        detached.add_(1)
        with m.enable_grad():
            inner = leaf(m) * 2
    y = leaf(m, 2.0, 2.0) * x
    return x.is_inference(), detached.is_inference(), x._version, x, inner.is_inference(), y


@program(raises=(RuntimeError, "Inplace update to inference tensor outside InferenceMode is not allowed"))
def an_inference_tensor_is_not_written_under_no_grad(m):
    with m.inference_mode():
        x = m.ones(2)
    with m.no_grad():
        x.mul_(2)


def test_an_inference_tensor_is_no_place_for_results():
    with gs.inference_mode():
        x = gs.ones(2)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        gs.add(gs.ones(2), 1, out=x)
    assert x.tolist() == [1.0, 1.0]


@program(returns=[False, [2.0]])
def nothing_is_recorded_in_inference_mode(m):
    x = leaf(m, 1.0)
    with m.inference_mode(), m.enable_grad():
        y = x * 2
    return y.requires_grad, y


@program(raises=(TypeError, "set_grad_enabled(): argument 'enabled' (position 1) must be bool, not str"))
def set_grad_enabled_takes_a_bool(m):
    m.set_grad_enabled("yes")


# --- anomaly mode -----------------------------------------------------------------------------------------------------


@program(raises=(RuntimeError, "Function 'SqrtBackward0' returned nan values in its 0th output."))
def a_nan_is_found(m):
    with m.autograd.detect_anomaly():
        x = leaf(m, 0.0)
        (x.sqrt() * 0).sum().backward()


@program(returns=[True])
def a_nan_is_not_looked_for(m):
    x = leaf(m, 0.0)
    with m.autograd.detect_anomaly(check_nan=False):
        (x.sqrt() * 0).sum().backward()
    return x.grad.isnan()


@program(returns=[1.0])
def a_nan_loss_alone_passes(m):
    with m.autograd.set_detect_anomaly(True):
        x = leaf(m, -1.0)
        y = (x - x) / (x - x)
        (y.detach() + x).sum().backward()
    return x.grad


@program(returns=[False, True, False])
def anomaly_mode_is_left(m):
    seen = [m.is_anomaly_enabled()] if hasattr(m, "is_anomaly_enabled") else [m.autograd.is_anomaly_enabled()]
    with m.autograd.set_detect_anomaly(True):
        y = leaf(m) * 2
        seen.append("traceback_" in y.grad_fn.metadata)
    z = leaf(m) * 2
    return [*seen, "traceback_" in z.grad_fn.metadata]


@program(raises=(RuntimeError, "Function 'FBackward' returned nan values in its 0th output."))
def a_nan_of_a_function(m):
    with m.autograd.set_detect_anomaly(True):
        custom(m, lambda ctx, x: x * 2, lambda ctx, g: g * float("nan")).apply(leaf(m)).sum().backward()


@program(returns="MulBackward0")
def the_parent_of_a_node_made_in_backward(m):
    with m.autograd.set_detect_anomaly(True):
        x = leaf(m)
        y = (x * x * x).sum()
        (first,) = m.autograd.grad(y, x, create_graph=True)
        node = first.grad_fn
        while "parent_" not in node.metadata:
            node = node.next_functions[0][0]
    return node.metadata["parent_"].name()


@pytest.mark.parametrize(("run", "returns", "raises"), program.found)
def test_program(run, returns, raises):
    program.check(gs, run, returns, raises)


@pytest.mark.torch
@pytest.mark.parametrize(("run", "returns", "raises"), program.found)
def test_program_in_torch(run, returns, raises, torch):
    program.check(torch, run, returns, raises)


def of_anomaly(run):
    """Run and return (the error, the texts of the warnings)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError) as error:
            run()
    return error.value, [str(w.message) for w in caught]


def test_the_forward_line_is_told():
    def run():
        with gs.autograd.set_detect_anomaly(True):
            x = leaf(gs, 0.0)
            y = x.sqrt()  # the line to be named
            (y * 0).sum().backward()

    error, texts = of_anomaly(run)
    assert any("Error detected in SqrtBackward0." in text and "the line to be named" in text for text in texts)
    assert any("the line to be named" in note for note in error.__notes__)


def test_the_parent_is_told_for_double_backward():
    def run():
        with gs.autograd.set_detect_anomaly(True):
            x = leaf(gs)
            (first,) = gs.autograd.grad(x.exp().sum(), x, create_graph=True)
            first.grad_fn.register_prehook(lambda grads: (grads[0] * float("nan"),))
            first.sum().backward()

    _, texts = of_anomaly(run)
    assert "Error detected in MulBackward0." in texts[0]
    assert "Previous calculation was induced by ExpBackward0." in texts[1]


def test_infinities_are_found_when_asked():
    x = leaf(gs, 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with gs.autograd.set_detect_anomaly(True, check_inf=True):
            with pytest.raises(RuntimeError, match="Function 'MulBackward0' returned inf values in its 0th output"):
                (x * float("inf")).sum().backward()
    with gs.autograd.set_detect_anomaly(True):
        (x * float("inf")).sum().backward()
    assert x.grad.tolist() == [float("inf")]


def test_without_a_forward_record():
    x = leaf(gs, 0.0)
    y = (x.sqrt() * 0).sum()

    def run():
        with gs.autograd.set_detect_anomaly(True):
            y.backward()

    _, texts = of_anomaly(run)
    assert any("No forward pass information available." in text for text in texts)


def test_the_names_of_autograd():
    assert gs.autograd.no_grad is gs.no_grad
    assert gs.autograd.grad_mode.inference_mode is gs.inference_mode
    assert gs.autograd.anomaly_mode.detect_anomaly is gs.autograd.detect_anomaly
    assert all(hasattr(gs.autograd, name) for name in gs.autograd.__all__)
