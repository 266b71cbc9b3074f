"""The instruments see the elements of a conjugate, and that it shares memory with what it is the conjugate of."""

import numpy

import gradscope as gs
import gradscope.inspect as gi
from gradscope.check.watching.saved_values import SavedValues
from gradscope.inspect.adapters import NativeAdapter
from gradscope.inspect.records.write_account import WriteAccount

VALUES = numpy.array([[1 + 1j, 2 - 3j], [0.5j, 4.0]])


def matrix(**options):
    return gs.tensor(VALUES, dtype=gs.complex128, **options)


def test_the_adapter_reads_the_elements_and_knows_the_memory():
    adapter = NativeAdapter()
    x = matrix()
    y = x.mH
    assert adapter.to_host(y).tolist() == VALUES.conj().T.tolist()
    assert adapter.memory(y)[1] is adapter.memory(x)[1]
    assert adapter.memory_key(y) == adapter.memory_key(x)
    assert adapter.region(y).address == adapter.region(x).address
    assert gi.summarize(adapter.to_host(y)).preview == gi.summarize(VALUES.conj().T).preview
    x.mul_(2)
    assert adapter.version(y) == 1
    assert adapter.copy(y).tolist() == (2 * VALUES.conj().T).tolist()


def test_a_write_past_the_versions_to_what_a_saved_conjugate_shows_is_seen():
    values = SavedValues(NativeAdapter(), WriteAccount())
    x = matrix()
    node = (matrix(requires_grad=True) * x.conj()).grad_fn
    values.note(node)
    assert list(values.changed(node)) == []
    x.data[0, 0] = 7
    assert [found.name for found, _ in values.changed(node)] == ["other"]


def test_gradients_that_are_conjugates_are_recorded_as_their_elements(tmp_path):
    """Under create_graph a gradient may be a conjugate; without, it is an array. The record is one."""
    told = []
    for create_graph in (False, True):
        x = matrix(requires_grad=True)
        loss = (x.conj() @ x.mH).imag.sum() + x.conj().imag.exp().sum()
        path = tmp_path / f"{create_graph}.gscope"
        with gi.record(path, "all"):
            gs.autograd.grad(loss, x, create_graph=create_graph)
        with gi.open_recording(path) as recording:
            task = recording.tasks()[0]
            told.append(
                [
                    (node.name, which, nr, recording.value(task.id, node.index, which, nr).tolist())
                    for node in task.nodes
                    for which in ("grad_outputs", "grad_inputs")
                    for nr, each in enumerate(getattr(node, which))
                    if each is not None
                ]
            )
    assert told[0] == told[1]
