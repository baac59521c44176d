"""What azure-ai-ml lets through is found by the check, with the file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from allranks.checks.plan import check
from pipeline_files import read, write, write_dsl

PASSES_THE_SDK = {
    "text for a number": ("lr='much'", "", "inputs.lr"),
    "out of range": ("lr=2", "", "inputs.lr"),
    "no such choice": ("kind='huge'", "", "inputs.kind"),
    "a fraction for an integer": ("epochs=1.5", "", "inputs.epochs"),
    "maybe": ("fast='maybe'", "", "inputs.fast"),
    "instances": ("", "step.resources = {'instance_count': -5}", "resources.instance_count"),
    "processes": (
        "",
        "step.distribution = MpiDistribution(process_count_per_instance=0)",
        "distribution.process_count_per_instance",
    ),
    "time": ("", "step.set_limits(timeout=0)", "limits.timeout"),
    "command": ("", "step.component.command = 'x ${{inputs.nope}}'", "command"),
    "another's folder": ("lr=train(data=data).outputs.model", "", "inputs.lr"),
}


@pytest.mark.parametrize(("argument", "line", "key"), PASSES_THE_SDK.values(), ids=PASSES_THE_SDK)
def test_what_passes_the_sdk(here: Path, argument: str, line: str, key: str) -> None:
    write_dsl(
        here,
        f"""
        @dsl.pipeline()
        def digits(data: Input(type="uri_folder")):
            step = train(data=data, {argument})
            {line or "pass"}
        """,
    )
    plan = read("pipeline.py", {"data": "data"})
    assert f"step step, key {key} (pipeline.py:7)" in [problem.where for problem in check(plan)]


def test_a_cycle_in_yaml(here: Path) -> None:
    job = "{type: command, component: ./train.yml, inputs: {data: '${{parent.jobs.%s.outputs.model}}'}}"
    write(here, "x.yml", f"type: pipeline\njobs:\n  a: {job % 'b'}\n  b: {job % 'a'}\n")
    (problem,) = check(read("x.yml"))
    assert (problem.where, problem.found) == ("step a (x.yml:3)", "steps wait for each other: a -> b -> a")
