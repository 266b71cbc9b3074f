"""What others than the optimizer write is told; the optimizer's own writes are not."""

from __future__ import annotations

from gradscope.inspect.adapters import adapter_for
from gradscope.inspect.records.before_step.parameter_writes import ParameterWrites, Written


def test_writes_are_told_by_when_they_came(fw):
    tensors = [fw.ones(2) for _ in range(3)]
    writes = ParameterWrites()
    assert writes.before_step(0, tensors) == Written()
    writes.stepped(0, adapter_for(tensors[0]), tensors)
    assert writes.before_step(0, tensors) == Written()
    writes.stepped(0, adapter_for(tensors[0]), tensors)
    tensors[2].zero_()
    writes.forward_begins()
    tensors[0].mul_(2)
    writes.forward_begins()
    assert writes.before_step(0, tensors[::-1]) == Written(before=(0,), after=(2,))


def test_without_a_forward_all_writes_came_before(fw):
    tensors = [fw.ones(2), fw.ones(2)]
    writes = ParameterWrites()
    writes.stepped(0, adapter_for(tensors[0]), tensors)
    tensors[1].zero_()
    assert writes.before_step(0, tensors) == Written(before=(1,))


def test_optimizers_are_followed_apart(fw):
    one, two = fw.ones(2), fw.ones(2)
    writes = ParameterWrites()
    one.mul_(2)
    writes.stepped(0, adapter_for(one), [one])
    writes.stepped(1, adapter_for(two), [two])
    two.mul_(2)
    writes.stepped(1, adapter_for(two), [two])
    assert (writes.before_step(0, [one]), writes.before_step(1, [two])) == (Written(), Written())


def test_a_tensor_that_is_gone_is_not_told(fw):
    kept, gone = fw.ones(2), fw.ones(2)
    writes = ParameterWrites()
    writes.stepped(0, adapter_for(kept), [kept, gone])
    del gone
    assert writes.before_step(0, [kept]) == Written()
