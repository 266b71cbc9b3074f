"""D342: containers are looked into without running their code."""

import pytest

import gradscope.inspect as gi


def test_what_torch_fx_has_traced_trains_under_the_doctor():
    torch = pytest.importorskip("torch")
    model = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))
    assert type(model).__name__ == "Sequential"
    with gi.Doctor() as doctor:
        model(torch.ones(1, 2)).sum().backward()
    assert "D342" not in {symptom.code for symptom in doctor.diagnosis.symptoms}


def test_a_container_may_have_an_empty_place(fw):
    model = fw.nn.Linear(2, 1)
    model.norms = fw.nn.ModuleList()
    model.norms.add_module("0", None)
    with gi.Doctor():
        model(fw.ones(1, 2)).sum().backward()
