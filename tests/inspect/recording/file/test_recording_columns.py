"""A recording as columns."""

import numpy

from gradscope.inspect.recording.file.recording_columns import columns


def test_columns_agree_with_the_records(recording):
    data = columns(recording)
    nodes = [(task, node) for task in recording.tasks() for node in task.nodes]
    assert len(data) == len(nodes) == 27
    for at, (task, node) in enumerate(nodes):
        assert (data.task[at], data.iteration[at], data.index[at]) == (task.id, task.iteration, node.index)
        assert data.static[int(data.node[at])].name == node.name
        for group, summaries in ((data.incoming, node.grad_outputs), (data.produced, node.grad_inputs)):
            there = [s for s in summaries if s is not None]
            norm = numpy.sqrt(sum(s.norm**2 for s in there)) if there else numpy.nan
            numpy.testing.assert_allclose(group["norm"][at], norm)
            assert group["zeros"][at] == sum(s.zeros for s in there)
            if there:
                assert group["min"][at] == min(s.min for s in there)
                assert group["mean"][at] == there[0].mean
