"""The programs with an LSTM and a Transformer, on gradscope's own modules, under the debugger."""

from pathlib import Path

import pytest

import gradscope as gs
from gradscope.inspect import Debugger
from tests.inspect.sessions import wait

HERE = Path(__file__).parent / "programs"

# Script, whether a recurrent layer is one node, operators and modules of some nodes, and the line at which those of the
# module were made.
PROGRAMS = [
    (
        "lstm",
        True,
        [("MkldnnRnnLayer", "lstm"), ("Addmm", "head")],
        ("lstm", "y, state = self.lstm(x, state)"),
    ),
    (
        "lstm",
        False,
        [("Sigmoid", "lstm"), ("Tanh", "lstm"), ("Addmm", "head")],
        ("lstm", "y, state = self.lstm(x, state)"),
    ),
    (
        "transformer",
        True,
        [("Bmm", "transformer.decoder.layers.0.multihead_attn"), ("Embedding", "embed")],
        (
            "transformer.encoder.layers.0.self_attn",
            "return self.out(self.transformer(self.embed(source), self.embed(target), tgt_mask=mask))",
        ),
    ),
]


@pytest.mark.parametrize(
    ("name", "layers", "nodes", "line"), PROGRAMS, ids=["lstm", "lstm in single steps", "transformer"]
)
def test_a_network_over_sequences(tmp_path, monkeypatch, name, layers, nodes, line):
    """Nodes carry the path of their module and the line of the user, and a module is a breakpoint."""
    monkeypatch.setattr(gs.backends.mkldnn, "enabled", layers)
    script = tmp_path / f"{name}.py"
    text = (HERE / f"{name}.py").read_text().replace("torch", "gradscope").replace("RMSprop", "Adam")
    script.write_text(text)
    module, wanted = line
    session = Debugger.for_script(str(script))
    session.start()
    try:
        assert wait(session) == "paused before"
        records = list(session.nodes)
        point = session.add_breakpoint(f"mod:{module}")
        session.cont()
        assert wait(session) == "paused before"
        assert session.nodes[session.current].module.startswith(module)
        session.remove_breakpoint(point.id)
        session.cont()
        assert wait(session) == "finished", session.traceback
    finally:
        session.abort()
    assert session.exit_status == 0
    assert {(record.operator, record.module) for record in records}.issuperset(nodes)
    placed = [r.location for r in records if r.name != "AccumulateGrad"]
    assert {location.filename for location in placed} == {str(script)}
    lines = {r.location.lineno for r in records if r.module == module and r.location is not None}
    assert {text.splitlines()[number - 1].strip() for number in lines} == {wanted}
