import weakref

from gradscope.check.finding_builder import WriteFact
from gradscope.check.write_ledger import Ledger, Shares
from gradscope.inspect import Location
from gradscope.inspect.adapters.memory_fingerprint import Region


def fact(operator, line=1):
    return WriteFact(operator, Location("train.py", line, "f", ""), True, True, False)


def between(ledger, saved, current):
    return [(write.operator, write.location.lineno) for write in ledger.between("memory", saved, current)]


def test_only_the_writes_since_the_save():
    ledger = Ledger()
    for version in range(1, 5):
        ledger.add("memory", version, fact("add_", line=version))
    assert between(ledger, 1, 3) == [("add_", 2), ("add_", 3)]
    assert between(ledger, 4, 4) == []
    assert ledger.between("other", 0, 4) == []


def test_repeated_at_one_place_it_is_one_write():
    ledger = Ledger()
    ledger.add("memory", 1, fact("add_"))
    for version in range(2, 100):
        ledger.add("memory", version, fact("mul_", line=2))
    assert between(ledger, 0, 99) == [("add_", 1), ("mul_", 2)]
    assert between(ledger, 50, 99) == [("mul_", 2)]


def test_the_last_16_places_are_kept():
    ledger = Ledger()
    for version in range(1, 21):
        ledger.add("memory", version, fact("add_", line=version))
    assert between(ledger, 0, 20) == [("add_", line) for line in range(5, 21)]


def test_what_had_the_address_before_is_passed_over():
    ledger = Ledger()
    for version in range(1, 4):
        ledger.add("memory", version, fact("old_", line=version))
    ledger.add("memory", 1, fact("new_"))
    assert between(ledger, 0, 1) == [("new_", 1)]


def test_the_last_write():
    ledger = Ledger()
    assert ledger.last("memory") is None
    ledger.add("memory", 1, fact("add_"))
    assert ledger.last("memory").operator == "add_"


def part(row):
    """Return one row of a matrix of four columns."""
    return Region(4096 + row * 32, (4,), (8,), 8)


def test_writes_elsewhere_spare_a_region_only_if_all_of_them_are_known():
    ledger = Ledger()
    for version in range(1, 5):
        ledger.add("memory", version, fact("copy_"), part(version))
    assert ledger.spared("memory", 1, 4, part(1))
    assert not ledger.spared("memory", 1, 4, part(3))
    assert not ledger.spared("memory", 1, 5, part(1))
    assert not ledger.spared("memory", 1, 4, None)
    assert not ledger.spared("other", 1, 4, part(1))
    ledger.add("memory", 5, fact("copy_"))
    assert not ledger.spared("memory", 1, 5, part(1))


def test_writes_that_count_no_version_are_known_by_the_clock():
    ledger = Ledger()
    ledger.add("memory", 1, fact("add_"))
    saved = ledger.clock
    ledger.add("memory", 1, fact("mul_"))
    assert [write.operator for write in ledger.since("memory", saved)] == ["mul_"]
    assert ledger.since("memory", ledger.clock) == []


class Share:
    """Stands for an adapter's: memory handed out, alive as long as `owner`."""

    def __init__(self, how, owner, line=1):
        self.how, self.memory, self.location = how, weakref.ref(owner), Location("train.py", line, "f", "")


class Owner:
    """Memory."""


def test_who_was_handed_a_memory_is_forgotten_with_it():
    shares, ledger, owner, other = Shares(), Ledger(), Owner(), Owner()
    for how in ("numpy()", "numpy()", ".data"):
        shares.add("memory", Share(how, owner), ledger)
    assert [share.how for share in shares.of("memory")] == ["numpy()", ".data"]
    del owner
    assert shares.of("memory") == []
    shares.add("memory", Share("numpy()", other, line=2), ledger)
    assert [share.location.lineno for share in shares.of("memory")] == [2]


def test_other_memory_assigned_is_a_write():
    shares, ledger, owner = Shares(), Ledger(), Owner()
    shares.add("memory", Share(".data =", owner), ledger)
    assert shares.of("memory") == []
    assert [write.operator for write in ledger.since("memory", 0)] == [".data ="]
