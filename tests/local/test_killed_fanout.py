"""A sweep and a parallel step whose engine is killed at random: what is done is not done again, and none is missing.

``ALLRANKS_KILLS=50`` is the long form, with so many kills. ``ALLRANKS_SEED`` selects when.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import bounded
from allranks.history import stored
from allranks.history.records import RunRecord, Status
from allranks.history.workspace import Workspace
from allranks.plan import codec
from allranks.plan.graph import Code, Graph, Plan, Step, Sweep
from allranks.plan.parallel import Parallel
from allranks.plan.ports import Input, Output
from allranks.plan.ports import Path as DataPath
from allranks.plan.sweep import Parameter, Sampling, SweepLimits

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("ALLRANKS_KILLS", "2"))
SEED = int(os.environ.get("ALLRANKS_SEED", "29"))
KILLS_A_RUN = 5
TRIALS, MINI_BATCHES = 8, 40

ENGINE = """
import sys
from pathlib import Path
from allranks.local import engine
from allranks.local.options import Options
from allranks.plan import codec
from allranks.history import stored
from allranks.history.workspace import Workspace

workspace = Workspace(Path(sys.argv[1], "w"))
options = Options(instances="loopback", track=False, slots=3)
runs = stored.runs(workspace)
if not runs:
    engine.run(codec.loads(Path(sys.argv[1], "plan.json").read_text()), workspace, options)
elif runs[0].status != "Completed":
    engine.resume(runs[0].id, workspace, options)
"""
TRAIN = """
echo trial $AZUREML_SWEEP_lr >> {marks}
sleep 0.02
loss='"metrics": {{"loss": '$AZUREML_SWEEP_lr'}}'
echo '{{"event": "progress", "step": 1, '"$loss"', "total": 1, "epoch": 0, "time": 1}}' >> $ALLRANKS_REPORT
echo $AZUREML_SWEEP_lr > ${{{{outputs.model}}}}/lr
"""
SCORE = """
import os, time
def run(batch):
    (name,) = map(os.path.basename, batch)
    with open({marks!r}, "a") as marks:
        marks.write("batch " + name + "\\n")
    time.sleep(0.005)
    return [name]
"""


class Project:
    """A folder with a plan of both nodes, the workspace of its run, and a line for each trial and batch that begins."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.marks, self.workspace = folder, folder / "marks", Workspace(folder / "w")
        for name in ("code", "data"):
            (folder / name).mkdir(parents=True)
        self.marks.touch()
        (folder / "code/score.py").write_text(SCORE.format(marks=str(self.marks)))
        for number in range(MINI_BATCHES):
            (folder / f"data/{number:02}").touch()
        body = Step(
            "tune",
            TRAIN.format(marks=self.marks),
            inputs=(Input("lr", "number"),),
            outputs=(Output("model", "uri_folder", "rw_mount"),),
        )
        space = (Parameter("lr", "uniform", (0.0, 1.0)),)
        limits = SweepLimits(total=TRIALS, concurrent=2)
        score = Step(
            "score",
            "python score.py",
            inputs=(Input("images", "uri_folder", DataPath(str(folder / "data")), "ro_mount"),),
            outputs=(Output("rows", "uri_file", "rw_mount"),),
            code=Code(str(folder / "code"), "digest"),
            parallel=Parallel(
                "score.py", "${{inputs.images}}", 1, max_concurrency=2, append_row_to="${{outputs.rows}}"
            ),
        )
        tune = Sweep("tune", body, space, "loss", sampling=Sampling("random", seed=7), limits=limits)
        (folder / "plan.json").write_text(codec.dumps(Plan("fanout", Graph((tune, score)))))

    def engine(self) -> subprocess.Popen[bytes]:
        """Start an engine that executes the run, or resumes it."""
        return bounded.Popen([sys.executable, "-c", ENGINE, str(self.folder)])

    def begun(self) -> Counter[str]:
        return Counter(self.marks.read_text().splitlines())

    def record(self) -> RunRecord:
        (record,) = stored.runs(self.workspace)
        return record

    def done(self) -> set[str]:
        """The trials that the run's record has as completed, and the mini-batches in the journal, as in the marks."""
        steps = [step for record in stored.runs(self.workspace) for step in record.steps if step.is_trial]
        found = {f"trial {step.inputs['lr']}" for step in steps if step.status is Status.COMPLETED}
        for journal in self.workspace.runs.glob("*/**/results.jsonl"):
            lines = [json.loads(line) for line in journal.read_text().splitlines(keepends=True)[1:] if line[-1] == "\n"]
            found |= {f"batch {text.strip()}" for _, _, text in lines}
        return found


def until_begun(project: Project, count: int, engine: subprocess.Popen[bytes]) -> None:
    """Wait until so many trials and mini-batches have begun, or the engine has ended."""
    while project.begun().total() < count and engine.poll() is None:
        time.sleep(0.005)


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    untouched = Project(tmp_path / "untouched")
    assert untouched.engine().wait() == 0
    expected = untouched.record()
    assert expected.status is Status.COMPLETED
    draw = random.Random(SEED)
    killed = run = 0
    while killed < KILLS:
        run += 1
        project = Project(tmp_path / f"run-{run}")
        kept: list[tuple[set[str], Counter[str]]] = []
        for _ in range(min(KILLS_A_RUN, KILLS - killed)):
            engine = project.engine()
            until_begun(project, project.begun().total() + draw.randint(0, 25), engine)
            time.sleep(draw.uniform(0, 0.03))
            engine.kill()
            if engine.wait() == 0:  # it has completed
                break
            killed += 1
            kept.append((project.done(), project.begun()))
        assert project.engine().wait() == 0
        record, begun = project.record(), project.begun()
        said = f"run {run} of seed {SEED}"
        assert record.status is Status.COMPLETED, said
        assert len([step for step in record.steps if step.is_trial]) == TRIALS, said
        for done, before in kept:
            assert {name: begun[name] for name in done} == {name: before[name] for name in done}, said
        assert begun.keys() == untouched.begun().keys(), said
        assert record.step("tune").result == expected.step("tune").result, said
        (model,), (rows,) = record.step("tune").outputs, record.step("score").outputs
        assert (Path(model.path) / "lr").read_text().strip() in record.step("tune").result
        assert Path(rows.path).read_text().split() == [f"{number:02}" for number in range(MINI_BATCHES)], said
