import pytest

from tests.check.reports import finding


def test_findings_are_frozen_and_know_their_places():
    found = finding()
    assert (found.primary, found.written, found.saved, found.read) == (
        found.sites[0].location,
        found.sites[0].location,
        found.sites[1].location,
        None,
    )
    assert found.again().occurrences == 2
    assert found.again().key == found.key
    with pytest.raises(AttributeError):
        found.code = "GS102"


def test_findings_without_places_differ_by_their_message():
    assert finding(sites=()).key != finding(sites=(), message="another").key
