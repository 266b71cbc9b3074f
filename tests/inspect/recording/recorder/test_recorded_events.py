"""What is kept of the modules of a run."""

from __future__ import annotations

from contextlib import closing

import gradscope.inspect as gi
from gradscope.inspect.recording.recorder import recorded_events


def modules_of(path):
    with gi.open_recording(path) as recording:
        (run,) = recording.runs
        return [(module.path, module.kind, module.arguments) for module in recording.modules(run.id)]


def test_modules_have_their_types_and_arguments_also_those_that_only_hold_others(fw, tmp_path):
    nn = fw.nn
    model, loss = nn.Sequential(nn.Linear(3, 2), nn.Sequential(nn.ReLU())), nn.MSELoss()
    with gi.record(tmp_path / "run.gscope"):
        for _ in range(3):
            loss(model(fw.ones(1, 3)), fw.zeros(1, 2)).backward()
    assert modules_of(tmp_path / "run.gscope") == [
        ("", "Sequential", ""),
        ("0", "Linear", "in_features=3, out_features=2, bias=True"),
        ("1", "Sequential", ""),
        ("1.0", "ReLU", ""),
        ("MSELoss", "MSELoss", ""),
    ]


def test_a_module_has_the_type_that_it_has_in_the_backward(fw, tmp_path):
    model = fw.nn.Sequential(fw.nn.LazyLinear(2))
    with gi.record(tmp_path / "run.gscope"):
        model(fw.ones(1, 3)).sum().backward()
    assert modules_of(tmp_path / "run.gscope")[1] == ("0", "Linear", "in_features=3, out_features=2, bias=True")


def test_a_class_of_the_programs_own_is_not_asked_what_it_says_about_itself(fw, tmp_path):
    asked = []

    class Own(fw.nn.Linear):
        def extra_repr(self):
            asked.append(self)
            return "own"

    class Inherits(fw.nn.Linear):
        pass

    model = fw.nn.Sequential(Own(3, 2), Inherits(2, 1))
    with gi.record(tmp_path / "run.gscope"):
        model(fw.ones(1, 3)).sum().backward()
    assert not asked
    assert modules_of(tmp_path / "run.gscope")[1:] == [
        ("0", "Own", ""),
        ("1", "Inherits", "in_features=2, out_features=1, bias=True"),
    ]


def test_modules_without_end_do_not_fill_the_file(fw, tmp_path, monkeypatch):
    monkeypatch.setattr(recorded_events, "_MOST_MODULES", 4)
    model = fw.nn.Sequential(*[fw.nn.Linear(1, 1) for _ in range(9)])
    with gi.record(tmp_path / "run.gscope"):
        model(fw.ones(1, 1)).sum().backward()
    assert len(modules_of(tmp_path / "run.gscope")) == 4


def test_each_run_of_a_file_has_its_own(fw, tmp_path):
    for layer in (fw.nn.Tanh(), fw.nn.ReLU()):
        model = fw.nn.Sequential(fw.nn.Linear(3, 2), layer)
        with gi.record(tmp_path / "run.gscope", append=True):
            model(fw.ones(1, 3)).sum().backward()
    with closing(gi.open_recording(tmp_path / "run.gscope")) as recording:
        kinds = [[module.kind for module in recording.modules(run.id)] for run in recording.runs]
    assert kinds == [["Sequential", "Linear", "Tanh"], ["Sequential", "Linear", "ReLU"]]
