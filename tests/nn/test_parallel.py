"""DataParallel runs its module where it is."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs


@pytest.mark.torch
def test_a_module_is_run_where_it_is(torch: Any) -> None:
    def facts(m: Any) -> Any:
        model = m.nn.DataParallel(m.nn.Linear(2, 1))
        model(m.ones(3, 2)).sum().backward()
        return list(model.state_dict()), model.module.weight.grad.tolist(), model.device_ids

    assert facts(gs) == facts(torch)
