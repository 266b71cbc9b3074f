"""A result that is used nowhere: what the lines below it do instead."""

import pytest

import gradscope.inspect as gi
from gradscope.inspect.diagnosis.no_gradient.no_grad_reasons import Reason
from tests.inspect.diagnosis.lines import line


def here(mark):
    return __file__, line(__file__, mark)


def asked(fw, program):
    w, v = fw.ones(3, requires_grad=True), fw.ones(3, requires_grad=True)
    with gi.ledger():
        loss = program(fw, w, v)
    return gi.why_no_grad(w, loss)


def replaced(fw, w, v):
    h = w * 2  # HERE: made
    h = fw.zeros(3)  # HERE: replaced
    return (h * v).sum()


def test_the_line_that_replaces_it_is_named(fw):
    found = asked(fw, replaced)
    assert found.reason is Reason.REBOUND
    assert [(place.filename, place.lineno) for place in found.locations] == [here("replaced"), here("made")]
    assert "but `h` is replaced at" in found.message
    assert found.suspects == ()


def never_read(fw, w, v):
    auxiliary = (  # noqa: F841
        (w * 2).sum()  # HERE: auxiliary
    )
    auxiliary_of_v = (v * 2).sum()
    return auxiliary_of_v


def test_a_name_that_nothing_reads(fw):
    found = asked(fw, never_read)
    assert (found.reason, found.location.lineno) == (Reason.NOT_IN_LOSS, here("auxiliary")[1])
    assert found.message.endswith("and nothing reads `auxiliary`")


def not_assigned(fw, w, v):
    w.exp()  # HERE: not assigned
    return v.sum()


def test_a_result_that_is_not_kept(fw):
    found = asked(fw, not_assigned)
    assert (found.reason, found.location.lineno) == (Reason.NOT_IN_LOSS, here("not assigned")[1])
    assert found.help == "It does not write the tensor: assign what it returns."


def of_a_read_value(fw, w, v):
    h = w * 2
    h = fw.zeros(3) + h.detach().sum().item()
    return (h * v).sum()


def in_a_branch(fw, w, v):
    h = w * 2
    if len(h):
        h = v * 2
    return h.sum()


def in_a_loop(fw, w, v):
    h = v
    for _ in range(2):
        assert len(h)
        h = w * 2
    return v.sum()


def in_a_closure(fw, w, v):
    h = w * 2

    def read():
        return h

    read()
    return v.sum()


def in_a_closure_made_before(fw, w, v):
    def read():
        return h.detach().sum().item()

    h = w * 2
    kept = read()
    h = fw.zeros(3)
    return (v + kept + h).sum()


def in_a_list(fw, w, v):
    kept = []
    kept.append(w * 2)
    return v.sum()


def unpacked(fw, w, v):
    _first, _second = (w * 2).unbind()[:2]
    return v.sum()


def by_an_augmented_assignment(fw, w, v):
    h = w * 2
    h += 1
    return v.sum()


READ = [
    of_a_read_value,
    in_a_branch,
    in_a_loop,
    in_a_closure,
    in_a_closure_made_before,
    in_a_list,
    unpacked,
    by_an_augmented_assignment,
]


@pytest.mark.parametrize("program", READ, ids=lambda program: program.__name__)
def test_what_may_have_been_read_is_not_said_to_be_unread(fw, program):
    found = asked(fw, program)
    assert found.reason is not Reason.REBOUND
    assert not any(words in found.message for words in ("is replaced", "nothing reads", "is not kept"))


def test_a_ledger_leaves_out_what_it_has_not_seen_cut(fw):
    def program(fw, w, v):
        v.detach().sum()
        kept = [w * 2]
        assert kept
        return v.sum()

    found = asked(fw, program)
    assert found.reason is Reason.NOT_IN_LOSS
    assert found.suspects == ()
