"""The keys of a step's result: digests of what the result depends on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from allranks.plan import digest
from allranks.plan.digest import KnownDigests
from allranks.plan.file_tree import Stop
from allranks.plan.graph import Step
from allranks.runs.records import StepRecord


def key(step: Step, inputs: Mapping[str, str | None], variables: Mapping[str, str]) -> str:
    """Return a digest of the step's code, command, layout, environment, outputs, and inputs.

    inputs:    for each port its value as text or, for data, the digest of its content
    variables: the step's environment variables
    """
    return digest.of_text(
        step.code.digest if step.code else "",
        step.command,
        json.dumps([step.distribution.type, asdict(step.distribution), step.instance_count], sort_keys=True),
        str(step.environment),
        json.dumps(dict(variables), sort_keys=True),
        json.dumps([[output.name, output.type, output.path] for output in step.outputs]),
        json.dumps(dict(inputs), sort_keys=True),
    )


def key_with(key: str, installed: str) -> str:
    """Return the key by which other runs find the result: an upgraded package is a different environment.

    installed: the digest of the step's Python and packages
    """
    return digest.of_text(key, installed)


def is_intact(step: StepRecord, stop: Stop | None = None, known: KnownDigests | None = None) -> bool:
    """Return whether the step's outputs still exist unchanged. Raise StoppedError once `stop` is set.

    known: digests of files that need not be read again
    """
    try:
        return all(digest.of_path(Path(output.path), stop, known) == output.digest for output in step.outputs)
    except OSError:
        return False
