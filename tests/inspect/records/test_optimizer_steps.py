"""Telling when optimizers step."""

import threading
import time

import gradscope as gs
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


def test_threads_that_look_at_the_same_moment_listen_once(monkeypatch):
    kept = gs.optim.optimizer.register_optimizer_step_post_hook

    def slow(hook):
        time.sleep(0.02)
        return kept(hook)

    monkeypatch.setattr(gs.optim.optimizer, "register_optimizer_step_post_hook", slow)
    told = []
    hooks = OptimizerHooks(after=told.append)
    threads = [threading.Thread(target=hooks.look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gs.optim.SGD([gs.ones(2, requires_grad=True)], lr=0.1).step()
    hooks.close()
    assert len(told) == 1


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
