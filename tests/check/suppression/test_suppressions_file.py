import re
import sys

import pytest

from gradscope.check.suppression.suppressions_file import SuppressionsFile, dotted_name
from gradscope.inspect import Location

TIMM = Location("/venv/lib/python3.11/site-packages/timm/layers/drop.py", 3, "DropPath.forward", "x.div_(keep)")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("GS107:timm", True),
        ("GS107:timm  # they mean it", True),
        ("GS107:timm.layers.drop.DropPath.forward", True),
        ("GS107:timm.*.forward", True),
        ("GS1:timm/layers/*.py", True),
        ("*:*/drop.py", True),
        ("*:drop.py", True),
        ("gs107 : timm", True),
        ("GS107:tim", False),
        ("GS107:torchvision", False),
        ("GS101:timm", False),
        ("GS107:timm.layers.drop.DropPath.backward", False),
        ("GS107:layers/conv.py", False),
    ],
)
def test_a_line_covers_a_library_a_function_or_a_file(line, expected):
    assert SuppressionsFile("f", [line]).silence("GS107", [TIMM]) is expected


def test_any_of_the_calls_counts():
    mine = Location("/home/me/train.py", 9, "main", "model(x)")
    assert SuppressionsFile("f", ["GS107:timm"]).silence("GS107", [mine, TIMM])


def test_a_module_on_the_path_is_named_as_it_is_imported(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert (
        dotted_name(Location(str(tmp_path / "models" / "unet.py"), 3, "UNet.forward", "")) == "models.unet.UNet.forward"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("GS107 timm", "f:2: 'GS107 timm' is no suppression: write CODE:PATTERN"),
        ("GS107:", "f:2: 'GS107:' is no suppression: write CODE:PATTERN"),
        ("GS1O7:timm", "f:2: no code 'GS1O7': did you mean 'GS107'?"),
    ],
)
def test_a_line_that_is_none_is_refused(line, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        SuppressionsFile("f", ["# mine", line])


def test_what_is_no_text_is_refused(tmp_path):
    path = tmp_path / "rules"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="rules: no text in UTF-8"):
        SuppressionsFile.read(str(path))


def test_what_has_silenced_nothing_is_told():
    suppressions = SuppressionsFile("f", ["GS107:timm", "*:torchvision"])
    suppressions.silence("GS107", [TIMM])
    assert [(notice.line, notice.text) for notice in suppressions.notices()] == [
        (2, "*:torchvision has silenced nothing in this run")
    ]
