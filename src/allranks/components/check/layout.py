"""Check that the numbers of instances and processes of a component are numbers."""

from __future__ import annotations

from collections.abc import Iterator

from allranks.components.check.subject import Finding, Subject
from allranks.plan.check.mistakes import count_binding


def layout(subject: Subject) -> Iterator[Finding]:
    """Report bindings, which azure-ai-ml takes on the steps of a pipeline only."""
    sections = {"resources": subject.resources, "distribution": subject.distribution}
    for keys, value in count_binding.in_sections(sections):
        yield Finding(count_binding.COUNT_BINDING, count_binding.problem(subject.place(*keys), value))
