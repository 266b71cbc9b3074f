"""At a NaN or an infinity under a GradScaler one hears that the step is left out, and whether that is normal."""

import numpy as np
import pytest

from ...sessions import debugging, wait


@pytest.fixture(params=["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def framework(request):
    """Each framework in turn."""
    return pytest.importorskip(request.param)


def program(fw, loss_of, *, parts=1, **options):
    """Return a program that takes a step with a GradScaler."""

    def run():
        weight = fw.ones(3, requires_grad=True)
        optimizer = fw.optim.SGD([weight], lr=0.1)
        scaler = fw.amp.GradScaler("cpu", **options)
        scaled = scaler.scale(loss_of(fw, weight))
        (scaled / parts if parts > 1 else scaled).backward()
        scaler.step(optimizer)
        scaler.update()

    return run


def in_half(fw, weight):
    """Return a loss whose gradient overflows float16 when it is scaled by more than 65504."""
    return (weight.to(fw.float16) * 1.0).float().sum()


def explained(run, *, step=False):
    with np.errstate(all="ignore"), debugging(run) as session:
        if step:
            session.step()
            assert wait(session) == "paused before"
        session.cont()
        assert wait(session) == "paused after"
        assert session.findings()[0].text == session.explain()
        return session.explain()


@pytest.mark.parametrize("parts", [1, 4])
def test_an_overflow_is_normal_until_the_scale_fits(framework, parts):
    told = explained(program(framework, in_half, parts=parts, init_scale=2.0**20))
    assert told.endswith(
        "\n  A GradScaler has scaled this loss by 1.04858e+06: it leaves the step out after this, and halves its scale."
        "\n  That is normal now and then, until the scale fits; at every step it is not."
    )


def test_so_it_is_in_a_backward_that_one_steps_through(framework):
    assert "A GradScaler has scaled" in explained(program(framework, in_half, init_scale=2.0**20), step=True)


def test_an_own_factor_is_named(framework):
    told = explained(program(framework, in_half, init_scale=2.0**20, backoff_factor=0.25))
    assert "and multiplies its scale by 0.25." in told


def test_what_a_lower_scale_does_not_mend_is_told_apart(framework):
    told = explained(program(framework, lambda fw, weight: ((weight - 1).sqrt() * 0).sum(), init_scale=8.0))
    assert told.endswith("\n  It leaves out every such step: its scale is not what makes this.")


def test_a_scaler_that_has_not_scaled_this_loss_does_nothing_to_it(framework):
    scaler = framework.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(framework.ones(1))

    def run():
        weight = framework.zeros(3, requires_grad=True)
        (weight.sqrt() * 2).sum().backward()

    assert "GradScaler" not in explained(run)
