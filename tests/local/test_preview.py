"""What --dry-run shows is what ranks get."""

from __future__ import annotations

import re
from pathlib import Path

from allranks.contract.pytorch import PyTorch
from allranks.history.records import Status
from allranks.history.workspace import Workspace
from allranks.local import preview
from allranks.local.instances.kinds import INSTANCE_KINDS
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import GraphInput, Input, Literal, NodeOutput, Output


def _plan() -> Plan:
    out = (Output("out", "uri_folder", "rw_mount"), Output("count", "integer"))
    return Plan(
        "p",
        Graph(
            (
                Step("first", "echo 3 > ${{outputs.count}}; cp /proc/self/environ ${{outputs.out}}/0", outputs=out),
                Step(
                    "train",
                    "cp /proc/self/environ ${{outputs.out}}/$RANK; : ${{inputs.lr}} ${{inputs.data}} ${{inputs.n}}",
                    inputs=(
                        Input("lr", "number", GraphInput("lr")),
                        Input("data", "uri_folder", NodeOutput("first", "out"), "ro_mount"),
                        Input("n", "integer", NodeOutput("first", "count")),
                    ),
                    outputs=out[:1],
                    distribution=PyTorch(2),
                    instance_count=2,
                    environment_variables={"NCCL_DEBUG": "INFO"},
                ),
            ),
            inputs=(Input("lr", "number", Literal(0.5)),),
        ),
    )


def test_the_environment_of_every_rank(kind: str, run_steps, workspace: Workspace) -> None:
    plan = _plan()
    shown = preview.previews(plan, workspace, INSTANCE_KINDS[kind])
    record = run_steps(plan=plan, instances=kind)
    assert record.status is Status.COMPLETED, record.verdict
    for step in record.steps:
        written = Path(next(output.path for output in step.outputs if output.name == "out"))
        assert len(shown[step.name].ranks) == len(step.ranks)
        for process, variables in shown[step.name].ranks:
            got = _variables(written / str(process.rank))
            # The run's id, a free port and what another step writes are known only once it runs.
            unknown = {"MASTER_PORT"} if kind == "loopback" else set()
            for name, value in variables.items():
                if name not in unknown and "<" not in value:
                    expected = value if "RUN" not in value else re.sub(r"\bRUN\b|RUN(?=_)", record.id, value)
                    assert _one_instance(got[name]) == _one_instance(expected), name


def test_commands_are_filled_in_as_far_as_they_are_known(workspace: Workspace) -> None:
    shown = preview.previews(_plan(), workspace, INSTANCE_KINDS["rack"])
    assert "0.5" in shown["train"].command
    assert "<first.count>" in shown["train"].command
    assert not workspace.root.exists()


def _variables(file: Path) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in file.read_bytes().decode().split("\0") if entry)
    return {name: value for name, _, value in pairs}


def _one_instance(text: str) -> str:
    """Paths on an instance differ by its number alone; the preview shows the first's."""
    return re.sub(r"/instances/\d+/", "/instances/0/", text)
