"""Programs broken before their author had read a rule: what the doctor says of each, and the table of it.

``python -m tests.inspect.diagnosis.blind_trial`` prints what docs/doctor-trial.md shows; with ``fresh_programs`` or
``later_programs``, that of the second or third trial.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tomllib
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from gradscope import enable_grad
from gradscope.cli import main

NAMES = ("blind_programs", "fresh_programs", "later_programs")
FOLDERS = tuple(Path(__file__).parent / name for name in NAMES)
STEPS = 30
VERDICTS = {
    "cause": "the cause is named, and nothing else",
    "symptom": "what the cause leads to is named",
    "missed": "nothing is said",
    "false": "something else is blamed",
}


@dataclass(frozen=True)
class Trial:
    """What is wrong with a program, and how the doctor judged it: at first sight, and now."""

    folder: Path
    program: str
    line: int
    cause: str
    first: str
    now: str
    finding: str = ""
    says: str = ""
    done: str = ""

    @property
    def path(self) -> Path:
        return self.folder / f"{self.program}.py"

    @property
    def needs_pytorch(self) -> bool:
        return "import torch\n" in self.path.read_text(encoding="utf-8")


TRIALS = [
    Trial(folder, program, **columns)
    for folder in FOLDERS
    for program, columns in tomllib.loads((folder / "verdicts.toml").read_text(encoding="utf-8")).items()
]


def findings_in(path: Path) -> list[tuple[str, str]]:
    """Return code and text of what the doctor finds in a program."""
    out = io.StringIO()
    # One of the programs turns recording off for good.
    with contextlib.redirect_stdout(out), warnings.catch_warnings(action="ignore"), enable_grad():
        main(["doctor", "--format", "json", "--steps", str(STEPS), str(path)])
    return [(symptom["code"], symptom["text"]) for symptom in json.loads(out.getvalue())["symptoms"]]


def table(folder: str = "blind_programs") -> str:
    """Return the verdicts on the programs of a folder as tables in Markdown: counted, and each by itself."""
    trials = [trial for trial in TRIALS if trial.folder.name == folder]
    first, now = (Counter(getattr(trial, when) for trial in trials) for when in ("first", "now"))
    lines = ["| | at first sight | now |", "|---|--:|--:|"]
    lines += [f"| {meaning} | {first[verdict]} | {now[verdict]} |" for verdict, meaning in VERDICTS.items()]
    lines += [
        "",
        "| program | what is wrong | at first sight | now | by | what was done |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| `{trial.program}` | line {trial.line}: {trial.cause} | {trial.first} | {trial.now} | {trial.finding} "
        f"| {trial.done} |"
        for trial in trials
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(*sys.argv[1:]))
