"""Gradients of leaves are put back."""

import gradscope as gs
from gradscope.inspect.adapters import NativeAdapter
from gradscope.inspect.debugging.history.gradient_restore import GradBackup


def test_backups_are_made_once_and_survive_accumulation_in_place():
    x = gs.ones(2, requires_grad=True)
    x.grad = gs.tensor([5.0, 6.0])
    backup = GradBackup(NativeAdapter())
    node = (x * 1).grad_fn.next_functions[0][0]
    assert backup.leaf_of(node) is x
    backup.keep(x)
    assert backup.leaf_of(node) is None
    x.sum().backward()
    assert x.grad.tolist() == [6.0, 7.0]
    assert backup.restore() == 1
    assert x.grad.tolist() == [5.0, 6.0]
    assert backup.restore() == 0


def test_a_leaf_that_has_been_filled_has_none_again_and_one_that_was_kept_before_what_it_had():
    kept, filled = gs.ones(2, requires_grad=True), gs.ones(2, requires_grad=True)
    kept.grad = gs.tensor([5.0, 6.0])
    backup = GradBackup(NativeAdapter())
    backup.keep(kept)
    nodes = [(x * 1).grad_fn.next_functions[0][0] for x in (filled, kept, filled)]
    (kept + filled).sum().backward()
    for node in nodes:
        backup.filled(node)
    assert backup.leaf_of(nodes[0]) is None
    assert backup.restore() == 2
    assert (filled.grad, kept.grad.tolist()) == (None, [5.0, 6.0])
