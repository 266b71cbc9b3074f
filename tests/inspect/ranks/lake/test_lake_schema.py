"""The tables of the dataset are documented as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradscope.inspect.ranks.lake.lake_schema import MARKER, TABLES, VERSION, check_lake, schema_table
from gradscope.inspect.recording import RecordingError

DOCS = Path(__file__).parents[4] / "docs"


@pytest.mark.parametrize("table", TABLES)
def test_the_documentation_has_every_column(table):
    assert schema_table(table) in (DOCS / "lake.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (json.dumps({"version": VERSION + 1}), f"has version {VERSION + 1} of the dataset"),
        (json.dumps({"version": "x" * 3}), "has version 'xxx'"),
        ("[]", "cannot be read"),
        ("{", "cannot be read"),
    ],
)
def test_a_dataset_of_another_version_is_refused(tmp_path, text, told):
    (tmp_path / MARKER).write_text(text)
    with pytest.raises(RecordingError, match=told):
        check_lake(str(tmp_path))
