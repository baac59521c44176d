"""A port in an environment variable reaches the process as text, on Azure ML and here; a warning says so."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from allranks.checks.plan import warnings
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Output

TODAY = date(2026, 1, 1)


def test_an_output_in_a_variable_stays_text_and_a_warning_says_so(run_steps) -> None:
    step = Step(
        "train",
        "echo $CHECKPOINTS",
        environment_variables={"CHECKPOINTS": "${{outputs.checkpoints}}/last"},
        outputs=(Output("checkpoints", "uri_folder"),),
    )
    record = run_steps(step)
    assert Path(record.steps[0].ranks[0].log).read_text().strip() == "${{outputs.checkpoints}}/last"
    (warning,) = warnings(Plan("p", Graph((step,))), TODAY)
    assert warning.where == "step train, key environment_variables.CHECKPOINTS"
    assert warning.found.startswith("${{outputs.checkpoints}} is not replaced")
    assert warning.fix == "set it in the command: export CHECKPOINTS=${{outputs.checkpoints}}; ..."


@pytest.mark.parametrize("value", ["INFO", "$HOME", "$[[ -f x ]]"])
def test_any_other_text_has_no_warning(value: str) -> None:
    assert warnings(Plan("p", Graph((Step("a", "true", environment_variables={"A": value}),))), TODAY) == []
