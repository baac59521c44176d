"""What differs between two runs: each of ten seeded differences is the first one that is named."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from allranks import differences
from allranks.cli.commands.diff import diff
from allranks.cli.commands.show import show
from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError
from allranks.history.records import RunRecord
from allranks.plan import digest
from allranks.plan.environment import registered
from allranks.plan.graph import Code, Graph, Plan, Step
from allranks.plan.ports import Input, Literal, NodeOutput, Output
from allranks.plan.ports import Path as Data
from allranks.workspace import Workspace
from run_records import make_curve, make_run, make_step

Runner = Callable[..., RunRecord]


pytestmark = pytest.mark.slow

COMMAND = "(cat ${{inputs.data}} run.py; echo ${{inputs.seed}} $SCALE) > ${{outputs.model}}/weights"


@dataclass(frozen=True)
class Project:
    """What a plan is made from. folder: has the code, the data and a virtual environment."""

    folder: Path
    seed: int = 1
    precision: str = "fp32"
    scale: str = "1"
    size: str = "Standard_NC6s_v3"
    processes: int = 1
    name: str = "own"

    def plan(self) -> Plan:
        code = Code(str(self.folder / "code"), digest.of_path(self.folder / "code"))
        if self.name == "copied":
            code = replace(code, folder=str(self.folder / "copy"), digest=digest.of_path(self.folder / "copy"))
        train = Step(
            "train",
            COMMAND,
            code=code,
            environment=registered("own:1"),
            environment_variables={"SCALE": self.scale},
            inputs=(
                Input("data", "uri_file", Data(str(self.folder / "rows.csv")), mode="ro_mount"),
                Input("seed", "integer", Literal(self.seed)),
                Input("precision", "string", Literal(self.precision)),
            ),
            outputs=(Output("model", "uri_folder", mode="rw_mount"),),
            distribution=PyTorch(self.processes),
            instance_type=self.size,
        )
        evaluate = Step(
            "evaluate",
            "cat ${{inputs.model}}/weights",
            inputs=(Input("model", "uri_folder", NodeOutput("train", "model"), mode="ro_mount"),),
        )
        return Plan("digits", Graph((train, evaluate)), source=str(self.folder / "pipeline.py"))


@pytest.fixture
def made(tmp_path: Path) -> Project:
    venv = tmp_path / ".venvs" / "own"
    (venv / "lib" / "python3.12" / "site-packages" / "numpy-1.26.4.dist-info").mkdir(parents=True)
    (venv / "bin").mkdir()
    (venv / "bin" / "python").symlink_to(sys.executable)
    (venv / "pyvenv.cfg").write_text("version = 3.12.1\n")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "run.py").write_text("import torch\nlr = 0.1\n")
    (tmp_path / "rows.csv").write_text("1\n2\n3\n")
    return Project(tmp_path)


def _package(made: Project) -> Project:
    packages = made.folder / ".venvs" / "own" / "lib" / "python3.12" / "site-packages"
    (packages / "numpy-1.26.4.dist-info").rename(packages / "numpy-2.1.0.dist-info")
    return made


def _file(made: Project) -> Project:
    (made.folder / "copy").mkdir()
    (made.folder / "copy" / "run.py").write_text("import torch\nlr = 0.2\n")
    return replace(made, name="copied")


def _data(text: str) -> Callable[[Project], Project]:
    def change(made: Project) -> Project:
        (made.folder / "rows.csv").write_text(text)
        return made

    return change


def _interpreter(made: Project) -> Project:
    (made.folder / ".venvs" / "own" / "pyvenv.cfg").write_text("version = 3.12.2\n")
    return made


SEEDED: dict[str, tuple[Callable[[Project], Project], str, str]] = {
    "package": (_package, "package numpy", "2.1.0"),
    "variable": (lambda made: replace(made, scale="2"), "variable SCALE", "2"),
    "file": (_file, "file run.py", "line 2: lr = 0.2"),
    "seed": (lambda made: replace(made, seed=2), "input seed", "2"),
    "input": (_data("1\n2\n4\n"), "data of input data", "rows.csv ("),
    "order": (_data("3\n2\n1\n"), "data of input data", "rows.csv ("),
    "precision": (lambda made: replace(made, precision="bf16"), "input precision", "bf16"),
    "rank count": (lambda made: replace(made, processes=2), "process_count_per_instance", "2"),
    "size": (lambda made: replace(made, size="Standard_ND96asr_v4"), "instance_type", "Standard_ND96asr_v4"),
    "interpreter": (_interpreter, "interpreter", "Python 3.12.2"),
}


@pytest.mark.parametrize("name", SEEDED)
def test_the_seeded_difference_comes_first(
    name: str, made: Project, workspace: Workspace, run_steps: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    change, what, after = SEEDED[name]
    first = run_steps(plan=made.plan())
    second = run_steps(plan=change(made).plan())
    diff(second.id, folder=workspace.root, json=True)
    (cause, *others) = json.loads(capsys.readouterr().out)["causes"]
    assert (cause["step"], cause["what"], others) == ("train", what, [])
    assert after in cause["after"]
    if name == "size":  # no result depends on it
        assert second.step("train").reused_from == first.id
        return
    show(second.id, why="train", folder=workspace.root)
    assert what in capsys.readouterr().out


def test_a_package_with_two_versions_comes_before_one_that_only_one_run_has(
    made: Project, workspace: Workspace, run_steps: Runner
) -> None:
    packages = made.folder / ".venvs" / "own" / "lib" / "python3.12" / "site-packages"
    (packages / "accelerate-1.0.0.dist-info").mkdir()
    first = run_steps(plan=made.plan())
    (packages / "accelerate-1.0.0.dist-info").rmdir()
    second = run_steps(plan=_package(made).plan())
    compared = differences.compare(*(differences.side(workspace, run) for run in (first, second)))
    assert [cause.what for cause in compared.causes] == ["package numpy", "package accelerate"]


def test_equal_runs_and_a_result_that_is_reused(
    made: Project, workspace: Workspace, run_steps: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (run_steps(plan=made.plan()) for _ in range(2))
    compared = differences.compare(*(differences.side(workspace, run) for run in (first, second)))
    assert (compared.causes, compared.results) == ((), ())
    show(second.id, why="train", folder=workspace.root)
    assert f"run {first.id}" in capsys.readouterr().out


def test_results_differ_in_outputs_states_and_curves(
    made: Project, workspace: Workspace, run_steps: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (run_steps(plan=replace(made, seed=seed).plan()) for seed in (1, 2))
    diff(first.id, second.id, folder=workspace.root)
    shown = capsys.readouterr().out
    for words in ([], [second.id]):  # with the run before it
        diff(*words, folder=workspace.root)
        assert capsys.readouterr().out == shown
    with pytest.raises(InputError, match="first run of pipeline digits"):
        diff(first.id, folder=workspace.root)
    assert "first difference: step train, input seed" in shown
    assert "output model" in shown
    # What an earlier step wrote is its result, and no cause.
    assert "data of input model" not in shown
    show(second.id, why="evaluate", folder=workspace.root)
    assert "data of input model" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([2.0, 1.0], [2.0, 1.5], [("metric loss", "1", "1.5")]),
        ([2.0, 0.5, 1.0], [2.0, 1.5], [("metric loss", "1", "1.5"), ("best loss", "0.5 at step 1", "1.5 at step 1")]),
        ([2.0, 1.0], [3.0, 1.0], [("metric loss", "2.0 at step 0", "3.0 at step 0")]),
        ([2.0, 1.0], [2.0, 1.0], []),
        ([2.0], [], [("metric loss", "2", "")]),
    ],
)
def test_metrics_are_compared_by_their_final_and_best_values(
    before: list[float], after: list[float], expected: list[tuple[str, str, str]]
) -> None:
    runs = [make_run(make_step("train", metrics={"loss": make_curve(*values)})) for values in (before, after)]
    compared = differences.compare(*(differences.Side(run, Plan("digits", Graph(())), {}, {}) for run in runs))
    assert [(each.what, each.before, each.after) for each in compared.results if "loss" in each.what] == expected
