from __future__ import annotations

import itertools

from gradscope.inspect.dap.stack import same_file, stack_of


def test_it_leads_from_the_node_to_the_loss_and_to_the_call_of_backward(program):
    frames = stack_of(program)
    assert [frame.name for frame in frames if frame.node >= 0] == ["0 SumBackward0"]
    assert [frame.node for frame in frames if frame.innermost] == [-1]
    assert next(frame for frame in frames if frame.innermost).name == "train"
    program.until("op:Tanh")
    program.wait(10)
    nodes = [frame for frame in stack_of(program) if frame.node >= 0]
    assert nodes[0].name == f"{program.current} TanhBackward0  1"
    assert nodes[-1].name == "0 SumBackward0"
    known = {node.index: node for node in program.nodes}
    for below, above in itertools.pairwise(nodes):
        assert known[below.node].key in {edge.target_key for edge in known[above.node].edges}
    assert all(same_file(known[frame.node].location, frame.path) for frame in nodes)
    assert not same_file(None, nodes[0].path)


def test_a_leaf_has_the_line_that_uses_it(program):
    program.until("op:AccumulateGrad")
    program.wait(10)
    leaf, user = stack_of(program)[:2]
    assert program.node.location is None
    assert leaf.node == program.current
    assert user.line
    assert (leaf.path, leaf.line) == (user.path, user.line)
