"""The folders of a step: it finds nothing of another step in them, and keeps what is its result."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from allranks.history.records import RunRecord, Status
from allranks.plan.graph import Graph, Plan, Step
from allranks.workspace import Workspace


def _chain(commands: list[str]) -> Plan:
    return Plan(
        "chain",
        Graph(tuple(Step(f"s{n}", command, after=(f"s{n - 1}",) if n else ()) for n, command in enumerate(commands))),
    )


LOOK = "ls -A . ${TMPDIR:-/tmp} outputs/ > ../../../seen; ls -Ald . outputs | cut -d ' ' -f 1 >> ../../../seen"


@pytest.mark.parametrize("kind", ["loopback", "rack"])
def test_no_step_finds_what_another_step_left(
    run_steps: Callable[..., RunRecord], workspace: Workspace, rack_works: bool, kind: str
) -> None:
    if kind == "rack" and not rack_works:
        pytest.skip("this machine has no user namespaces")
    leaves = "touch here outputs/artifact ${TMPDIR:-/tmp}/left; chmod 700 .; mkdir -p ${TMPDIR:-/tmp}/folder"
    commands = ["true", "true", leaves, "true", "pwd > outputs/where", "true"]
    record = run_steps(plan=_chain(commands), instances=kind)
    assert record.status is Status.COMPLETED
    seen = run_steps(plan=_chain([f"{command}; {LOOK}" for command in commands]), instances=kind)
    texts = [(Path(step.folder) / "seen").read_text() for step in seen.steps]
    assert texts[0] == texts[1] == texts[3] == texts[5]
    assert "left" in texts[2]
    assert [step.artifacts for step in record.steps] == [[], [], ["outputs/artifact"], [], ["outputs/where"], []]
    where = (Path(record.steps[4].folder) / "outputs" / "where").read_text().strip()
    assert where == f"{record.steps[4].folder}/instances/0/code"
    for step in record.steps:
        assert sorted(os.listdir(step.folder)) == ["outputs", "reports", "user_logs"]
    assert os.listdir(workspace.temporary) == [] if kind == "rack" else True
