import gradscope as gs
from gradscope.check.watching.kept_values import KeptValues
from gradscope.check.watching.saved_values import SavedValues
from gradscope.inspect.adapters import NativeAdapter
from gradscope.inspect.records.write_account import WriteAccount


class Case:
    """What exp() has saved, and its copies."""

    def __init__(self):
        adapter = NativeAdapter()
        self.values, self.kept = SavedValues(adapter, WriteAccount()), KeptValues(adapter)
        self.y = gs.zeros(2, 3, requires_grad=True).exp()
        self.values.note(self.y.grad_fn)
        self.kept.note(self.y.grad_fn, lambda memory: False)

    def written(self):
        found = self.kept.written(self.y.grad_fn, self.values)
        values = [None if tensor.values is None else tensor.values.tolist() for tensor in found]
        return [(tensor.saved.name, was, tensor.version) for tensor, was in zip(found, values, strict=True)]


def test_nothing_is_copied_before_it_is_written():
    case = Case()
    case.kept.keep(gs.ones(2))
    assert case.written() == []
    case.kept.keep(case.y)
    assert case.written() == []
    case.y.detach().zero_()
    assert case.written() == [("result", [[1.0] * 3] * 2, 0)]


def test_the_first_write_counts():
    case = Case()
    for _ in range(2):
        case.kept.keep(case.y.detach())
        case.y.detach().add_(1)
    assert case.written() == [("result", [[1.0] * 3] * 2, 0)]


def test_a_write_that_is_undone_is_one_of_the_version_alone():
    case = Case()
    case.y.detach().mul_(2)
    case.y.detach().mul_(0.5)
    assert case.written() == [("result", None, 0)]


def test_what_was_not_kept_is_not_made_up():
    case = Case()
    case.y.detach().mul_(2)
    assert case.written() == []


def test_what_was_forgotten_is_copied_no_more():
    case = Case()
    case.kept.forget(case.y.grad_fn)
    assert case.kept._by_memory == {}
    assert case.written() == []
