import gc
import weakref

import pytest

import gradscope as gs
from gradscope.inspect import Location
from gradscope.inspect.adapters import Observer, adapter_for
from gradscope.inspect.adapters.memory_fingerprint import Region
from gradscope.inspect.records.write_account import MemoryShares, WriteAccount
from gradscope.inspect.records.write_facts import WriteFact


def fact(operator, line=1):
    return WriteFact(operator, Location("train.py", line, "f", ""), True, True, False)


def between(account, saved, current):
    return [(write.operator, write.location.lineno) for write in account.between("memory", saved, current)]


def test_only_the_writes_since_the_save():
    account = WriteAccount()
    for version in range(1, 5):
        account.add("memory", version, fact("add_", line=version))
    assert between(account, 1, 3) == [("add_", 2), ("add_", 3)]
    assert between(account, 4, 4) == []
    assert account.between("other", 0, 4) == []


def test_repeated_at_one_place_it_is_one_write():
    account = WriteAccount()
    account.add("memory", 1, fact("add_"))
    for version in range(2, 100):
        account.add("memory", version, fact("mul_", line=2))
    assert between(account, 0, 99) == [("add_", 1), ("mul_", 2)]
    assert between(account, 50, 99) == [("mul_", 2)]


def test_one_line_of_a_library_is_a_place_for_each_line_that_called_it():
    account, shares = WriteAccount(), MemoryShares()
    owner = Owner()
    for version, line in enumerate((3, 3, 9), start=1):
        called = Location("library.py", 7, "step", "p.add_(d)", (Location("train.py", line, "", "step(p)"),))
        account.add("memory", version, WriteFact("add_", called, True, True, False))
        share = Share("numpy()", owner)
        share.location = called
        shares.add("memory", share, account)
    assert [write.location.calls[0].lineno for write in account.between("memory", 0, 3)] == [3, 9]
    assert [write.location.calls[0].lineno for write in account.between("memory", 2, 3)] == [9]
    assert [share.location.calls[0].lineno for share in shares.of("memory")] == [3, 9]


def test_the_last_16_places_are_kept():
    account = WriteAccount()
    for version in range(1, 21):
        account.add("memory", version, fact("add_", line=version))
    assert between(account, 0, 20) == [("add_", line) for line in range(5, 21)]


def test_what_had_the_address_before_is_passed_over():
    account = WriteAccount()
    for version in range(1, 4):
        account.add("memory", version, fact("old_", line=version))
    account.add("memory", 1, fact("new_"))
    assert between(account, 0, 1) == [("new_", 1)]


def test_the_last_write():
    account = WriteAccount()
    assert account.last("memory") is None
    account.add("memory", 1, fact("add_"))
    assert account.last("memory").operator == "add_"


def part(row):
    """Return one row of a matrix of four columns."""
    return Region(4096 + row * 32, (4,), (8,), 8)


def test_writes_elsewhere_spare_a_region_only_if_all_of_them_are_known():
    account = WriteAccount()
    for version in range(1, 5):
        account.add("memory", version, fact("copy_"), part(version))
    assert account.spared("memory", 1, 4, part(1))
    assert not account.spared("memory", 1, 4, part(3))
    assert not account.spared("memory", 1, 5, part(1))
    assert not account.spared("memory", 1, 4, None)
    assert not account.spared("other", 1, 4, part(1))
    account.add("memory", 5, fact("copy_"))
    assert not account.spared("memory", 1, 5, part(1))


def test_writes_that_count_no_version_are_known_by_the_clock():
    account = WriteAccount()
    account.add("memory", 1, fact("add_"))
    saved = account.clock
    account.add("memory", 1, fact("mul_"))
    assert [write.operator for write in account.since("memory", saved)] == ["mul_"]
    assert account.since("memory", account.clock) == []


class Share:
    """Stands for an adapter's: memory handed out, alive as long as `owner`."""

    def __init__(self, how, owner, line=1):
        self.how, self.memory, self.location = how, weakref.ref(owner), Location("train.py", line, "f", "")


class Owner:
    """Memory."""


def test_who_was_handed_a_memory_is_forgotten_with_it():
    shares, account, owner, other = MemoryShares(), WriteAccount(), Owner(), Owner()
    for how in ("numpy()", "numpy()", ".data"):
        shares.add("memory", Share(how, owner), account)
    assert [share.how for share in shares.of("memory")] == ["numpy()", ".data"]
    del owner
    assert shares.of("memory") == []
    shares.add("memory", Share("numpy()", other, line=2), account)
    assert [share.location.lineno for share in shares.of("memory")] == [2]


def test_other_memory_assigned_is_a_write():
    shares, account, owner = MemoryShares(), WriteAccount(), Owner()
    shares.add("memory", Share(".data =", owner), account)
    assert shares.of("memory") == []
    assert [write.operator for write in account.since("memory", 0)] == [".data ="]


@pytest.fixture(params=["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def lib(request):
    return gs if request.param == "gradscope" else pytest.importorskip("torch")


class Heard(Observer):
    """Hands writes on, and holds no tensor."""

    def __init__(self, account, adapter):
        self.account, self.adapter = account, adapter

    def tensor_written(self, write):
        self.account.note(self.adapter, write)


def test_what_is_kept_of_a_memory_goes_with_it(lib):
    account, tensor = WriteAccount(), lib.ones(3)
    adapter = adapter_for(tensor)
    with adapter.observe(Heard(account, adapter), forward=False, backward=False, own_writes=True):
        for _ in range(200):
            tensor.add_(1)
    key = adapter.memory_key(tensor)
    assert [write.operator for write in account.between(key, 0, 200)] == ["add_"]
    assert len(account._memories) == 1
    del tensor
    gc.collect()
    assert account.between(key, 0, 200) == []
    assert not account._memories


class HeardAtOnce(Heard):
    """Hands on all that a call has written."""

    def tensors_written(self, writes):
        self.account.note_all(self.adapter, writes)


def test_what_a_call_has_written_is_noted_as_each_write_would_be(lib):
    accounts = WriteAccount(), WriteAccount()
    tensors = [lib.ones(3, requires_grad=True), lib.ones(2, 2, requires_grad=True), lib.ones(1)]
    adapter = adapter_for(tensors[0])
    observers = [kind(account, adapter) for kind, account in zip((Heard, HeardAtOnce), accounts)]
    optimizer = lib.optim.SGD(tensors[:2], lr=0.1)
    for tensor in tensors[:2]:
        tensor.grad = lib.ones(*tensor.shape)
    with (
        adapter.observe(observers[0], forward=False, backward=False, own_writes=True),
        adapter.observe(observers[1], forward=False, backward=False, own_writes=True),
    ):
        for _ in range(3):
            optimizer.step()
            tensors[2].add_(1)
    for tensor in tensors:
        key, version = adapter.memory_key(tensor), tensor._version
        one, other = (account.between(key, 0, version) for account in accounts)
        assert one == other
        assert len(one) == 1
    assert accounts[0].clock == accounts[1].clock
