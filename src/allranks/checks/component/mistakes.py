"""Find common mistakes of jobs in a component by itself, such as a launcher inside a launcher.

They are those of a step that uses the component and sets nothing. What a component leaves to its steps, such as the
size of /dev/shm if it has no resources, is no mistake of its own. A pipeline component is checked by its steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from itertools import chain
from typing import Any

from allranks.checks.component.subject import Subject
from allranks.checks.plan import advice, hardware, mistakes, warnings
from allranks.checks.plan.mistakes import count_binding
from allranks.checks.plan.scope import of_plan
from allranks.errors import Problem
from allranks.plan.graph import Step
from allranks.plan.reader import alone


def of_component(component: Any, subject: Subject) -> Iterator[Problem]:
    """Yield the mistakes of a component. component: as the SDK has loaded it"""
    plan = alone.read_component(component, subject.path)
    today = date.today()
    if plan is None:
        return
    if subject.is_pipeline:
        yield from chain(warnings(plan, today), advice(plan, today))
        return
    (step,) = plan.graph.nodes
    assert isinstance(step, Step)
    for problem in chain(mistakes.by_key(of_plan(plan), step), hardware.by_key(step, today)):
        keys = problem.where.split(".")
        if keys[0] != "resources" or subject.resources:
            yield replace(problem, where=subject.place(*keys))


def layout(subject: Subject) -> Iterator[Problem]:
    """Report bindings, which azure-ai-ml takes on the steps of a pipeline only."""
    sections = {"resources": subject.resources, "distribution": subject.distribution}
    for keys, value in count_binding.in_sections(sections):
        yield count_binding.problem(subject.place(*keys), value)
