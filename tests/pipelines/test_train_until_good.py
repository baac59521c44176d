"""The pipeline with loops and a condition as a user runs it: the engine is killed inside a loop, the run resumed."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from allranks.plan.graph import Condition, DoWhile, ParallelFor, Pipeline
from allranks.plan.reader import read_plan
from allranks.plan.walk import walk
from allranks_command import allranks, started

PIPELINE = Path(__file__).resolve().parents[2] / "pipelines" / "train_until_good.py"
PATIENCE = 900.0
"""Seconds in which training has to come to an end on a machine that has other things to do as well."""
KILLED_IN = "loop[1].train"
SETTINGS = ("--set", "instance_count=1", "--set", "target_accuracy=0.97")
"""One rank a training takes more steps in an epoch: the best seed reaches 0.955 in its first, 0.99 in its second."""


def test_it_has_each_kind_of_node(tmp_path: Path) -> None:
    plan = read_plan(str(PIPELINE), {}, tmp_path)
    nodes = {path: node for path, node, _ in walk(plan.graph)}
    loop, seeds, decision = nodes["loop"], nodes["seeds"], nodes["promotion.is_better"]
    assert isinstance(nodes["promotion"], Pipeline)
    assert isinstance(seeds, ParallelFor)
    assert [item.name for item in seeds.items] == ["0", "1", "2"]  # type: ignore[union-attr]
    assert isinstance(loop, DoWhile)
    assert (loop.condition, loop.feedback, loop.limit) == ("below_target", (("model", "initial_model"),), 8)
    assert isinstance(decision, Condition)
    assert (decision.then, decision.otherwise) == (("register",), ())
    assert nodes["loop[0].train"].inputs  # the loop's body is walked as its first iteration


@dataclass(frozen=True)
class Story:
    """One run: as it was when its engine was killed, as it was once it had been resumed, and a run after it."""

    folder: Path
    killed: dict[str, Any]
    resumed: dict[str, Any]
    again: dict[str, Any]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("train_until_good")
    kill_in_loop(folder)
    killed = shown(folder)
    resuming = allranks("resume", "latest", folder=folder, patience=PATIENCE)
    assert resuming.code == 0, resuming.out + resuming.err
    resumed = shown(folder)
    again = allranks("run", PIPELINE, *SETTINGS, "--json", folder=folder, patience=PATIENCE)
    assert again.code == 0, again.err
    return Story(folder, killed, resumed, again.json)


def kill_in_loop(folder: Path) -> None:
    """Run the pipeline until the loop trains for the second time, and kill the engine there."""
    with started("run", PIPELINE, *SETTINGS, folder=folder) as engine:
        assert engine.stdout is not None
        lines = []
        for line in engine.stdout:
            lines.append(line)
            if KILLED_IN in line and "Running" in line:
                break
        else:
            pytest.fail(f"the loop never got there: {''.join(lines)}")
        below = psutil.Process(engine.pid).children(recursive=True)
        engine.kill()
        _, alive = psutil.wait_procs(below, timeout=PATIENCE)
        assert alive == []


def shown(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = allranks("show", "latest", "--json", folder=folder, patience=PATIENCE).json
    return found


def by_path(run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {step["name"]: step for step in run["steps"]}


@pytest.mark.slow
@pytest.mark.recipe
@pytest.mark.timeout(1800)
@pytest.mark.xdist_group("train until good")  # they look at the same runs
class TestKilledInTheLoopAndResumed:
    def test_the_killed_run_says_how_far_it_came(self, story: Story) -> None:
        steps = by_path(story.killed)
        assert story.killed["status"] == "Interrupted"
        assert steps["loop[0]"]["status"] == "Completed"
        assert steps[KILLED_IN]["status"] == "Interrupted"

    def test_finished_iterations_are_not_run_again(self, story: Story) -> None:
        before, after = by_path(story.killed), by_path(story.resumed)
        finished = {path: step for path, step in before.items() if step["status"] == "Completed"}
        assert {"seeds", "seeds[2].train", "loop[0].check"} <= set(finished)
        assert {path: after[path] for path in finished} == finished
        assert after[KILLED_IN]["attempt"] == before[KILLED_IN]["attempt"] + 1

    def test_the_loop_ends_with_the_iteration_that_reaches_the_target(self, story: Story) -> None:
        steps = by_path(story.resumed)
        assert story.resumed["status"] == "Completed"
        rounds = [path for path in steps if path.startswith("loop[") and path.endswith(".check")]
        below = [value_of(steps[path], "missed") for path in rounds]
        assert len(rounds) >= 2
        assert below == ["True"] * (len(rounds) - 1) + ["False"]
        last = rounds[-1].removesuffix(".check")
        assert story.resumed["outputs"]["model"] == path_of(steps[f"{last}.train"], "model")

    def test_the_loop_begins_with_the_best_of_the_seeds(self, story: Story) -> None:
        steps = by_path(story.resumed)
        accuracies = [float(value_of(steps[f"seeds[{seed}].check"], "value")) for seed in range(3)]
        best = int(value_of(steps["best"], "index"))
        assert accuracies[best] == max(accuracies)
        assert steps["loop[0].train"]["inputs"]["seed"] == str(best)
        # It is the trial of that seed, and its result is reused.
        assert steps["loop[0].train"]["reused_from"] == story.resumed["id"]

    def test_a_model_is_registered_only_where_there_is_none_as_good(self, story: Story) -> None:
        assert by_path(story.resumed)["promotion.register"]["status"] == "Completed"
        again = by_path(story.again)
        assert story.again["status"] == "Completed"
        assert value_of(again["promotion.compare"], "improved") == "False"
        assert again["promotion.register"]["status"] == "Skipped"
        with sqlite3.connect(story.folder / ".allranks" / "mlflow.db") as models:
            assert models.execute("SELECT name, version FROM model_versions").fetchall() == [("image-classifier", 1)]


def value_of(step: dict[str, Any], output: str) -> str:
    (found,) = (port for port in step["outputs"] if port["name"] == output)
    return str(found["value"])


def path_of(step: dict[str, Any], output: str) -> str:
    (found,) = (port for port in step["outputs"] if port["name"] == output)
    return str(found["path"])
