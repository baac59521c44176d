"""One step of a past run again, with what it had, and recorded nowhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import allranks
from allranks.api.replay import plan_of
from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError, Problem
from allranks.local import engine
from allranks.plan import digest
from allranks.plan.graph import Code, Graph, Item, ParallelFor, Plan, Step
from allranks.plan.ports import GraphInput, Input, Literal, NodeOutput, Output, Text
from allranks.runs import history
from allranks.runs.records import RunRecord, Status
from allranks.runs.workspace import Workspace
from allranks_command import content, forked

TRAIN = """
import os, pathlib, sys
rank, data, lr = os.environ["RANK"], pathlib.Path(sys.argv[1]), sys.argv[2]
print(rank, data.joinpath("text").read_text().strip(), lr, os.environ["NAME"])
pathlib.Path(sys.argv[3], rank).write_text(lr)
if rank == "1" and lr == "0.10":
    raise ValueError("bad shard")
"""


@pytest.fixture
def failed(tmp_path: Path, run_steps: Callable[..., RunRecord]) -> RunRecord:
    """A run whose second iteration has failed."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text(TRAIN)
    data = NodeOutput("prepare", "data")
    prepare = Step("prepare", "echo points > ${{outputs.data}}/text", outputs=(Output("data", "uri_folder"),))
    train = Step(
        "train",
        f"{sys.executable} train.py ${{{{inputs.data}}}} ${{{{inputs.lr}}}} ${{{{outputs.model}}}}",
        code=Code(str(tmp_path / "code"), digest.of_path(tmp_path / "code")),
        inputs=(Input("data", "uri_folder", data, "ro_mount"), Input("lr", "number", Literal(1.0))),
        outputs=(Output("model", "uri_folder", path=str(tmp_path / "model")),),
        distribution=PyTorch(2),
        environment_variables={"NAME": Text(("of-", GraphInput("user")))},
    )
    values = (Item("a", (("lr", Literal(0.2)),)), Item("b", (("lr", Literal("0.10")),)))
    loop = ParallelFor("loop", train, values)
    after = Step("after", "echo", after=("loop",))
    graph = Graph((prepare, loop, after), (Input("user", "string", Literal("ann")),))
    record = run_steps(plan=Plan("plan", graph))
    assert record.status is Status.FAILED
    return record


def replayed(record: RunRecord, path: str, folder: Path) -> RunRecord:
    plan, options = plan_of(record.id, path, Workspace(Path(record.folder).parents[1]), folder)
    return engine.run(plan, Workspace(folder), options)


def logs(record: RunRecord, path: str) -> list[str]:
    return [Path(rank.log).read_text().partition("\nTraceback")[0].strip() for rank in record.step(path).ranks]


@pytest.mark.slow
def test_a_step_has_its_recorded_inputs_and_variables(failed: RunRecord, tmp_path: Path) -> None:
    before = content(tmp_path)
    for label, status in (("a", Status.COMPLETED), ("b", Status.FAILED)):
        path = f"loop[{label}].train"
        record = replayed(failed, path, tmp_path.with_name(f"replay_{label}"))
        assert record.status is status
        assert logs(record, "train") == logs(failed, path)
        assert logs(record, "train")[0].endswith("of-ann")
        verdict, known = record.step("train").verdict, failed.step(path).verdict
        assert (verdict and verdict.reason, verdict and verdict.where) == (
            known and known.reason,
            known and known.where,
        )
    changed = {name for name, text in content(tmp_path).items() if before.get(name) != text}
    assert not any("model" in name or "runs" in name or name.endswith("allranks.db") for name in changed), changed


@pytest.mark.slow
def test_the_command_and_the_api_fail_as_the_step_did(failed: RunRecord, tmp_path: Path) -> None:
    workspace = Path(failed.folder).parents[1]
    done = forked("replay", failed.id, "loop[b].train", "--folder", workspace, folder=tmp_path)
    assert (done.code, "ValueError: bad shard (train.py:7)" in done.out) == (1, True), done.err
    with pytest.raises(allranks.RunFailedError, match=r"rank 1 on instance 0: ValueError: bad shard \(train.py:7\)"):
        allranks.replay(failed.id, "loop[b].train", folder=workspace).wait()
    assert [run.id for run in history.runs(Workspace(workspace))] == [failed.id]


def test_what_cannot_be_replayed_or_has_changed(failed: RunRecord, tmp_path: Path) -> None:
    workspace, data = Workspace(Path(failed.folder).parents[1]), Path(failed.step("prepare").outputs[0].path)
    cases = (
        ("nope", "prepare", "run nope"),
        (failed.id, "nope", "step nope: there is no such step"),
        (failed.id, "loop", "it is not a step with a command"),
        (failed.id, "after", "it has not run"),
    )
    for run, step, message in cases:
        with pytest.raises(InputError, match=message):
            plan_of(run, step, workspace, tmp_path)
    (data / "text").write_text("others")
    warnings: list[Problem] = []
    plan_of(failed.id, "loop[a].train", workspace, tmp_path, warn=warnings.extend)
    assert "has changed since" in str(warnings[0])
    shutil.rmtree(data)
    with pytest.raises(InputError, match=r"input data of step .* is gone"):
        plan_of(failed.id, "loop[a].train", workspace, tmp_path)
    shutil.rmtree(tmp_path / "code")
    with pytest.raises(InputError, match=r"its code .* is gone"):
        plan_of(failed.id, "loop[a].train", workspace, tmp_path)
