"""Check that a step's environment and launch have what its component requires for the chosen values."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from allranks.checks.plan.rule import Level, Rule
from allranks.checks.plan.scope import Scope
from allranks.checks.plan.suggestions import one_of
from allranks.contract.requirements import LAUNCH, Requirement, launch_problem, requirements
from allranks.contract.templating import wire
from allranks.errors import Problem
from allranks.plan.graph import Step
from allranks.plan.ports import Literal
from allranks.plan.requirement_files import packages

REQUIREMENT = Rule(
    "requirement",
    Level.ERROR,
    "The step's environment or launch lacks what its component's tags require for the chosen values.",
    "the component's own tags, [components.md](components.md)",
    "choose another value or environment",
)


def of_step(scope: Scope, step: Step, supplied: Collection[str] = ()) -> Iterator[Problem]:
    """Yield a launch that does not fit, and chosen values whose packages the environment lacks.

    supplied: inputs to which a loop gives values, which are not known yet

    An environment whose packages are not known, such as a registered one, is not checked.
    """
    problem = launch_problem(step.tags.get(LAUNCH, ""), step.distribution)
    if problem is not None:
        yield replace(problem, where=scope.key(step, problem.where))
    required = requirements(step.tags, {port.name: port.enum for port in step.inputs})
    available = packages(step.environment.folder) if required else None
    if available is None:
        return
    lacking = [each for each in required if each.missing(available)]
    for each in lacking:
        if not each.input or (each.input not in supplied and _chosen(scope, step, each)):
            yield _problem(scope, step, each, ", ".join(each.missing(available)), lacking)


def _chosen(scope: Scope, step: Step, requirement: Requirement) -> bool:
    port = next((port for port in step.inputs if port.name == requirement.input), None)
    value = scope.value(port.value) if port else None
    return isinstance(value, Literal) and wire(value.value) == requirement.value


def _problem(scope: Scope, step: Step, wrong: Requirement, missing: str, lacking: list[Requirement]) -> Problem:
    name = step.environment.name or "its environment"
    if not wrong.input:
        fix = "use an environment that has it, or add it there"
        return Problem(scope.key(step, "environment"), f"{name}, which does not have {missing}", missing, fix)
    impossible = {each.value for each in lacking if each.input == wrong.input}
    port = next(port for port in step.inputs if port.name == wrong.input)
    others = [value for value in port.enum if value not in impossible]
    found = f"{wrong.value!r}, which needs {missing}; the environment {name} does not have it"
    fix = f"choose another {wrong.input}, or use a component whose environment has {missing}"
    return Problem(scope.key(step, f"inputs.{wrong.input}"), found, one_of(others, f"{missing} in {name}"), fix)
