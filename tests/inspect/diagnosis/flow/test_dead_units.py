"""Units of rectifiers that no example activates."""

import gradscope.inspect as gi
from tests.inspect.diagnosis.lines import line


def test_dead_units(fw):
    model = fw.nn.Sequential(fw.nn.Linear(2, 3), fw.nn.ReLU(), fw.nn.Linear(3, 1))
    with fw.no_grad():
        model[0].weight.fill_(1.0)
        model[0].bias.copy_(fw.tensor([1.0, -100.0, -100.0]))
    with gi.ledger():
        loss = model(fw.ones(5, 2)).sum()  # HERE: dead
    flow = gi.gradient_flow(model, loss)
    (unit,) = flow.rectifiers
    assert (unit.module, unit.dead, unit.units) == ("1", 2, 3)
    assert unit.location.lineno == line(__file__, "dead")
    assert "`0.weight`: 2 of 3 rows get no gradient" in flow.findings
    assert any(f.startswith("`1`: 2 of 3 units dead") for f in flow.findings)
