"""Warn of images and environments whose content changes without a change of the job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from allranks.checks.plan.rule import Level, Rule
from allranks.checks.plan.scope import Scope
from allranks.errors import Problem
from allranks.plan.graph import Step

IMAGE = Rule(
    "latest-image",
    Level.WARNING,
    "An image has the tag latest, or none. Azure ML builds the environment once and keeps it, so that it is neither "
    "the newest image nor a known one.",
    'Microsoft Learn, "What are Azure Machine Learning environments?", image caching and reuse; '
    "Azure/AzureML-Containers: images are published with dated tags",
    "name a tag or a digest",
)
LABEL = Rule(
    "latest-label",
    Level.ADVICE,
    "The environment is the newest version of its name: a later run, or a schedule, may run in another one.",
    'Microsoft Learn, "How to manage environments": a label moves with each version',
    "name a version",
)


def of_step(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a finding if the environment of a step is a moving one."""
    environment = step.environment
    if is_moving(environment.image):
        fix = f"name a tag or a digest: {environment.image.removesuffix(':latest')}:TAG"
        yield IMAGE.problem("environment", f"image {environment.image}", "an image that does not change", fix)
    elif environment.version == "@latest":
        yield LABEL.problem("environment", str(environment), "a version")


def joined(problems: Iterable[Problem]) -> list[Problem]:
    """Return findings with one for each moving environment, at the first step that has it, which names the others."""
    groups: dict[object, list[Problem]] = {}
    for number, problem in enumerate(problems):
        is_moving_environment = problem.rule in (IMAGE.code, LABEL.code)
        groups.setdefault(problem.found if is_moving_environment else number, []).append(problem)
    return [_naming(first, [_step_of(other) for other in others]) for first, *others in groups.values()]


def _step_of(problem: Problem) -> str:
    return problem.where.partition(",")[0].removeprefix("step ")


def _naming(problem: Problem, others: list[str]) -> Problem:
    if not others:
        return problem
    return replace(problem, found=f"{problem.found}, also of step{'s' if others[1:] else ''} {', '.join(others)}")


def is_moving(image: str) -> bool:
    """Return whether an image has no tag, or the tag latest, and no digest. False for no image, and for a variable."""
    tag = image.rpartition("/")[2].partition(":")[2]
    return image != "" and "@" not in image and "$" not in image and tag in ("", "latest")
