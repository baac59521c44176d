"""What a verification submits, and what it costs at most."""

from __future__ import annotations

from dataclasses import dataclass

from allranks.plan.graph import Plan, Step, steps

MINUTES = 5
"""Minutes for which each instance is estimated to be billed, most of them for its start and the pull of the image."""


@dataclass(frozen=True)
class Submission:
    """The steps that are submitted, by name."""

    steps: dict[str, Step]

    @property
    def at_once(self) -> int:
        """The number of instances if all steps that can run together do."""
        return sum(step.instance_count for step in self.steps.values())

    @property
    def at_least(self) -> int:
        """The number of instances that a workspace has to have."""
        return max(step.instance_count for step in self.steps.values())

    @property
    def instance_minutes(self) -> int:
        """The estimated cost: billed instances x minutes."""
        return self.at_once * MINUTES


def submission(plan: Plan) -> Submission:
    """Return what is submitted for a plan."""
    return Submission(dict(steps(plan.graph)))
