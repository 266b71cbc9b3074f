import gc
import weakref

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from gradscope.inspect.adapters.torch.writes.unversioned_writes import HandedMemory  # noqa: E402


def now():
    return torch._C._autograd._get_sequence_nr()


def record():
    """Make a node, so that time goes on."""
    torch.ones(1, requires_grad=True) * 1


def key_of(tensor):
    return tensor.untyped_storage()._cdata


def changed(handed, tensor, time):
    return handed.changed_since([(key_of(tensor), time, tensor)])


@pytest.mark.parametrize("size", [3, 400_000])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_change_counts_for_what_was_saved_before_it(size, transposed):
    x = torch.ones(2, size)
    x = x.t() if transposed else x
    handed, array = HandedMemory(), x.numpy()
    handed.hand_out(x, array)
    saved = now()
    record()
    assert not changed(handed, x, saved)
    array[:] = 0
    assert changed(handed, x, saved)
    record()
    assert not changed(handed, x, now())


def test_who_lets_go_of_memory_unchanged_is_forgotten():
    x = torch.ones(3)
    handed, alias = HandedMemory(), x.detach()
    handed.hand_out(x, alias)
    assert handed
    del alias
    assert not handed


def test_a_change_is_known_after_its_writer_has_gone():
    x = torch.ones(3)
    handed, alias = HandedMemory(), x.detach()
    handed.hand_out(x, alias)
    saved = now()
    record()
    alias.zero_()
    del alias
    assert changed(handed, x, saved)


@pytest.mark.parametrize("columns", [4, 40_000])
def test_other_bytes_than_those_that_were_saved_are_told_apart_in_what_is_small(columns):
    x = torch.zeros(3, columns)
    handed = HandedMemory()
    saved = []
    for column in range(3):
        alias = x.detach()
        handed.hand_out(x, alias)
        alias[:, column] = 1
        del alias
        saved.append(now())
        record()
    small = columns == 4
    assert [changed(handed, x[:, : column + 1], saved[column]) for column in range(3)] == [
        not small, not small, False
    ]  # fmt: skip
    assert changed(handed, x[:, 1:], saved[0])
    assert changed(handed, x.t()[1:2], saved[0])
    assert not changed(handed, x[:0], saved[0]) or not small


@pytest.mark.parametrize("elements", [8, 8_000])
def test_any_number_of_changes_are_told_apart(elements):
    x = torch.zeros(elements)
    handed = HandedMemory()
    before = []
    for turn in range(300):
        before.append(now())
        record()
        part = x[turn % 4 :: 4] if turn % 3 else x[turn % 8 : turn % 8 + 1]
        alias = x.detach()
        handed.hand_out(x, alias)
        part += 1
        del alias
    last_of_place = {place: max(t for t in range(300) if not t % 3 and t % 8 == place) for place in range(8)}
    last_of_lane = {lane: max(t for t in range(300) if t % 3 and t % 4 == lane) for lane in range(4)}
    for place in range(8):
        last = max(last_of_place[place], last_of_lane[place % 4])
        assert changed(handed, x[place], before[last])
        assert not changed(handed, x[place], before[last] + 1)


def test_of_a_storage_that_grows_all_counts_as_written():
    x = torch.zeros(4)
    handed, alias = HandedMemory(), x.detach()
    handed.hand_out(x, alias)
    saved = now()
    record()
    alias[0] = 1
    assert not changed(handed, x[1:], saved)
    x.untyped_storage().resize_(400)
    assert changed(handed, x[1:], saved)
    larger = x.new_empty(0).set_(x.untyped_storage(), 0, (100,))
    handed.hand_out(larger, larger)
    larger.fill_(7)
    assert changed(handed, larger, saved)
    del alias


@pytest.mark.parametrize("kept", [True, False])
def test_of_a_device_s_memory_the_alias_tells(kept):
    x = torch.ones(3, device="meta")
    handed, alias = HandedMemory(), x.data
    handed.hand_out(x, alias)
    saved = now()
    record()
    assert not changed(handed, x, saved)
    alias.zero_()
    if not kept:
        del alias
    assert changed(handed, x, saved)
    record()
    assert not changed(handed, x, now())


def test_a_change_is_forgotten_when_a_graph_is_run_that_is_younger():
    x = torch.ones(3)
    handed, alias = HandedMemory(), x.detach()
    handed.hand_out(x, alias)
    alias.zero_()
    del alias
    assert handed.concerns(now() - 1)
    assert not handed.concerns(now())
    assert not handed


def test_memory_is_kept_by_nobody_and_forgotten_with_its_end():
    handed, x = HandedMemory(), torch.ones(3)
    alias = x.detach()
    handed.hand_out(x, alias)
    storage = weakref.ref(x.untyped_storage())
    del x, alias
    gc.collect()
    assert storage() is None
    assert not handed


def test_memory_that_is_handed_out_again_to_the_same_is_looked_at_once():
    x = torch.ones(3)
    handed = HandedMemory()
    for value in range(5):
        handed.hand_out(x, x)
        handed.hand_out(x, None)
        x.fill_(value)
    assert [len(aliases) for aliases in handed._live.values()] == [2]


def test_memory_that_was_given_back_is_not_read():
    x = torch.ones(1000)
    handed, alias = HandedMemory(), x.detach()
    handed.hand_out(x, alias)
    x.untyped_storage().resize_(0)
    assert not changed(handed, x, -1)
    del alias


@pytest.mark.parametrize(
    "tensor",
    [
        torch.ones(0),
        torch.ones(2).to_sparse(),
        torch.ones(2, device="meta"),
        torch.ones(3, dtype=torch.complex64).conj(),
    ],
    ids=["empty", "sparse", "meta", "conjugate"],
)
def test_what_has_no_memory_of_its_own_is_passed_over(tensor):
    handed = HandedMemory()
    handed.hand_out(tensor, None)
    assert bool(handed) is (tensor.is_conj())
