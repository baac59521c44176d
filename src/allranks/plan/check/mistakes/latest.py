"""Warn of images and environments whose content changes without a change of the job."""

from __future__ import annotations

from collections.abc import Iterator

from allranks.errors import Problem
from allranks.plan.check.rule import Level, Rule
from allranks.plan.check.scope import Scope
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


def is_moving(image: str) -> bool:
    """Return whether an image has no tag, or the tag latest, and no digest. False for no image, and for a variable."""
    tag = image.rpartition("/")[2].partition(":")[2]
    return image != "" and "@" not in image and "$" not in image and tag in ("", "latest")
