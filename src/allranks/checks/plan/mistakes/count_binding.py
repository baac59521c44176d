"""A binding as a number of instances or processes, which azure-ai-ml takes on a component's node only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allranks.checks.plan.rule import Level, Rule
from allranks.errors import Problem

COUNT_BINDING = Rule(
    "count-binding",
    Level.ERROR,
    "A component, a command job or a step with a command of its own has a binding as instance_count or "
    "process_count_per_instance.",
    "azure-ai-ml, `_schema/job_resource_configuration.py` and `_schema/job/distribution.py`: the numbers are "
    "fields.Int; Azure/azure-sdk-for-python#29538 allows bindings on nodes that use a component",
    "write a number, and set the binding on the step of a pipeline that uses the component",
)

KEYS = (("resources", "instance_count"), ("distribution", "process_count_per_instance"))


def problem(where: str, value: Any) -> Problem:
    """Return the error of a binding in place of a number."""
    return COUNT_BINDING.problem(where, f"{value}, a binding", "a whole number")


def in_sections(sections: Mapping[str, Any]) -> list[tuple[tuple[str, str], Any]]:
    """Return the keys with a binding in a component's resources and distribution."""
    found = []
    for section, name in KEYS:
        settings = sections.get(section)
        value = settings.get(name) if isinstance(settings, Mapping) else None
        if value is not None and "${{" in str(value):
            found.append(((section, name), value))
    return found
