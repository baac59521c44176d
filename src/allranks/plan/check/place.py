"""How a message names a place in a plan, and a name that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from allranks.plan.graph import Plan, Step
from allranks.sdk.paths import shown


def of_key(step: Step, key: str) -> str:
    """``step train, key inputs.lr (pipeline.py:31)``."""
    return f"step {step.name}, key {key}{_at(step)}"


def of_step(step: Step) -> str:
    """``step train (pipeline.py:31)``."""
    return f"step {step.name}{_at(step)}"


def of_pipeline(plan: Plan, key: str) -> str:
    """``pipeline digits, key inputs.lr (pipeline.py)``."""
    return f"pipeline {plan.name}, key {key}{f' ({shown(plan.source)})' if plan.source else ''}"


def one_of(names: Iterable[str], none: str) -> str:
    """What may stand somewhere. none: what is said where nothing may."""
    listed = ", ".join(names)
    return f"one of {listed}" if listed else none


def meant(name: str, names: Iterable[str]) -> str:
    """``did you mean lr?``, or nothing where no name is similar."""
    similar = difflib.get_close_matches(name, list(names), n=1)
    return f"did you mean {similar[0]}?" if similar else ""


def _at(step: Step) -> str:
    return f" ({step.location})" if step.location else ""
