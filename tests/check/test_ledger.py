from gradscope.check.diagnosis import WriteFact
from gradscope.check.ledger import Ledger
from gradscope.inspect import Location


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
