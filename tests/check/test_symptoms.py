"""Findings of the sanitizer among the doctor's."""

from __future__ import annotations

from dataclasses import replace

import gradscope as gs
import gradscope.inspect as gi
from gradscope.check import Sanitizer, finding_as_text, symptoms_of


def test_a_finding_is_told_as_a_symptom():
    with Sanitizer(keep_going=True) as sanitizer, gi.Doctor() as doctor:
        h = gs.ones(3, requires_grad=True).exp()
        h.add_(1)
        h.sum().backward()
    (finding,) = sanitizer.findings
    (symptom,) = symptoms_of(sanitizer)
    assert (symptom.code, symptom.location) == (finding.code, finding.primary)
    assert f"{symptom.code} {symptom.kind}: {symptom.text}" == finding_as_text(finding)
    diagnosis = replace(doctor.diagnosis, others=(symptom,))
    assert symptom in diagnosis.symptoms
    assert symptom.text.splitlines()[0] in str(diagnosis)


def test_nothing_found_is_no_symptom():
    assert symptoms_of(Sanitizer()) == ()
