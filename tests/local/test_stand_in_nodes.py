"""A node that a folder stands in for: its outputs, which other nodes read."""

from pathlib import Path

from allranks.checks.plan import findings
from allranks.errors import Level
from allranks.history.records import Status
from allranks.plan import codec
from allranks.plan.graph import Graph, Plan, StandIn, Step
from allranks.plan.ports import Input, NodeOutput, Output
from pipeline_files import write
from plan_findings import check
from trials import Trials

READ = Step(
    "use",
    "ls ${{inputs.model}} ${{inputs.score}}",
    inputs=(
        Input("model", "uri_folder", NodeOutput("fit", "model"), "ro_mount"),
        Input("score", "number", NodeOutput("fit", "score")),
    ),
)


def stand_in(folder: Path | None) -> StandIn:
    paths = [str(folder / name) if folder else None for name in ("model", "score.txt")]
    outputs = (Output("model", "uri_folder", path=paths[0]), Output("score", "number", path=paths[1]))
    return StandIn("fit", "an AutoML job", str(folder or ""), outputs=outputs)


def test_others_read_its_outputs(tmp_path: Path, trial_of: Trials) -> None:
    write(tmp_path, "have/model/weights", "1\n")
    write(tmp_path, "have/score.txt", "0.5\n")
    node = stand_in(tmp_path / "have")
    plan = Plan("p", Graph((node, READ)))
    assert check(plan) == []
    assert codec.loads(codec.dumps(plan)) == plan
    trial = trial_of(node, READ)
    assert trial.execute() is Status.COMPLETED
    assert trial.tries == ["use"]
    assert trial.given == {"use": {"model": f"{tmp_path}/have/model", "score": "0.5"}}
    record = trial.run.step("fit")
    assert (record.kind, [len(output.digest) for output in record.outputs]) == ("stand_in", [64, 64])
    assert record.notes == [f"not run: its outputs are those of {tmp_path}/have"]


def test_without_a_folder_the_plan_is_checked_and_does_not_run() -> None:
    plan = Plan("p", Graph((stand_in(None), READ)))
    (problem,) = check(plan)
    assert (problem.rule, problem.level) == ("not-run-here", Level.MACHINE)
    assert problem.fix == "to run the rest on its outputs: --stand-in fit=FOLDER"
    assert findings(plan, here=False).found == ()
    lacking = StandIn("fit", "an AutoML job", inputs=(Input("table", "uri_file"),), outputs=stand_in(None).outputs)
    found = findings(Plan("p", Graph((lacking, READ))))
    assert [error.where for error in found.errors] == ["step fit, key inputs.table"]
