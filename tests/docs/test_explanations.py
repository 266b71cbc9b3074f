"""What docs/explanations.md shows is what the commands print, and its codes are the rules."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradscope.check.findings.finding_codes import CODES, all_codes

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanations.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n\$ (.+)\n((?:.*\n)*?)```", PAGE)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "shown"), BLOCKS, ids=[command for command, _ in BLOCKS])
def test_output(command, shown):
    program, *arguments = command.split()
    start = [sys.executable] if program == "python" else [sys.executable, "-m", "gradscope"]
    done = subprocess.run([*start, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.stdout == shown


def test_there_is_something_to_compare():
    assert [command for command, _ in BLOCKS] == [
        "python examples/why_no_grad.py",
        "python examples/suspects.py",
        "python examples/nan_origin.py",
        "gradscope doctor examples/why_no_grad.py",
    ]


def test_the_codes_are_the_rules():
    rows = re.findall(r"^\| (D\d+) \| `(.+)` \| (.+) \|$", PAGE, re.MULTILINE)
    assert rows == [(rule.code, rule.kind, rule.title) for rule in all_codes().values() if rule.code not in CODES]
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (GS\d+) \| (.+) \| .+ \|$", page, re.MULTILINE)
    assert rows == [(rule.code, rule.title) for rule in CODES.values()]
