"""Telling when optimizers step."""

from gradscope.inspect.records.optimizer_steps import OptimizerHooks, held_by, living_optimizers


def test_before_and_after_each_step(fw):
    w = fw.ones(2, requires_grad=True)
    optimizer = fw.optim.SGD([w], lr=0.1)
    told = []
    hooks = OptimizerHooks(before=lambda o: told.append(("before", o)), after=lambda o: told.append(("after", o)))
    hooks.look()
    hooks.look()
    optimizer.step()
    hooks.close()
    optimizer.step()
    assert told == [("before", optimizer), ("after", optimizer)]


def test_steps_of_an_optimizer_with_a_scheduler_around(fw):
    optimizer = fw.optim.Adam([fw.ones(2, requires_grad=True)])
    scheduler = fw.optim.lr_scheduler.StepLR(optimizer, 1)
    told = []
    hooks = OptimizerHooks(before=lambda o: told.append(("before", o)), after=lambda o: told.append(("after", o)))
    hooks.look()
    optimizer.step()
    scheduler.step()
    hooks.close()
    assert told == [("before", optimizer), ("after", optimizer)]


def test_an_optimizer_that_has_not_stepped_is_found(fw):
    w, v = fw.ones(2, requires_grad=True), fw.ones(2, requires_grad=True)
    optimizer = fw.optim.SGD([{"params": [w]}, {"params": [v], "lr": 1.0}], lr=0.1)
    assert any(found is optimizer for found in living_optimizers())
    assert [id(t) for t in held_by(optimizer)] == [id(w), id(v)]
