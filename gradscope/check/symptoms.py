"""What the sanitizer has found as symptoms, which the doctor tells beside its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .formats.text_report import finding_as_text
from .sanitizer import Sanitizer

if TYPE_CHECKING:
    from ..inspect.diagnosis.doctor import Symptom

__all__ = ["symptoms_of"]


def symptoms_of(sanitizer: Sanitizer) -> tuple[Symptom, ...]:
    """Return the findings of a sanitizer as symptoms.

    See Also
    --------
    gradscope.inspect.Doctor : has them beside its own, in ``dataclasses.replace(doctor.diagnosis, others=...)``.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.check import Sanitizer, symptoms_of
    >>> with Sanitizer() as sanitizer:
    ...     y = gs.ones(2, requires_grad=True).exp()
    ...     _ = y.add_(1)
    ...     try:
    ...         y.sum().backward()
    ...     except RuntimeError:
    ...         pass
    >>> [symptom.code for symptom in symptoms_of(sanitizer)]
    ['GS101']
    """
    # The doctor is there where this is called, and no other part of `check` loads it.
    from ..inspect.diagnosis.doctor import Symptom

    found = []
    for finding in sanitizer.findings:
        kind, _, text = finding_as_text(finding).partition(": ")
        kind = kind.removeprefix(f"{finding.code} ")
        found.append(Symptom(kind, text, finding.primary, finding.code))
    return tuple(found)
