"""What a run produced besides its metrics: outputs, registered models, and the lines in which its steps report a
result."""

from __future__ import annotations

from pathlib import Path

from allranks.runs.formatting import count
from allranks.runs.nested import in_every_iteration
from allranks.runs.records import RunRecord, StepRecord

ARTIFACTS = "./outputs"


def outputs(run: RunRecord) -> dict[str, str]:
    """Return the outputs of the run by name: paths, or the text of primitives.

    A command job also has the files that it wrote below ./outputs.
    """
    found = dict(run.outputs)
    if len(run.steps) == 1 and run.steps[0].name == run.name and run.steps[0].artifacts:
        (step,) = run.steps
        found[ARTIFACTS] = f"{Path(step.folder) / 'outputs'} ({count(len(step.artifacts), 'file')})"
    return found


def models(run: RunRecord) -> dict[str, str]:
    """Return the versions of models that the run's steps registered, by name."""
    versions: dict[str, list[str]] = {}
    for step in run.steps:
        for model in step.models:
            by = f"by {step.name}{f' in run {step.reused_from}' if step.reused_from else ''}"
            versions.setdefault(model.name, []).append(f"version {model.version} ({by})")
    return {name: ", ".join(texts) for name, texts in versions.items()}


def reported(run: RunRecord) -> dict[str, str]:
    """Return the result that each step reported, by its path. Of the iterations of a loop, return the last one's."""
    last: dict[str, StepRecord] = {}
    for step in run.steps:
        if step.result:
            last[in_every_iteration(step.name)] = step
    return {step.name: step.result for step in last.values()}
