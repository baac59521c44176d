"""train_gradient_boosting and evaluate_table_model as real processes, on one rank and on several."""

import json
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from component_processes import COMPONENTS, Ended, Running, run_script, run_small_script, running_script

from allranks.errors import InputError
from allranks_steps.tables.prepared_table import Description

Importer = Callable[[str, str], Any]

# Each starts trainings in processes of their own: seconds apiece.
pytestmark = pytest.mark.slow

KEEP_MANY = ("--save_total_limit", "999")
SETTINGS = ("--num_iterations", "60", "--eval_steps", "10", "--learning_rate", "0.2")


def train(data: Path, folder: Path, *arguments: str, ranks: int = 1) -> Ended:
    return run_script(
        "train_gradient_boosting", *options(data, folder), *arguments, script=script(), folder=folder, ranks=ranks
    )


def options(data: Path, folder: Path) -> list[str]:
    outputs = {
        "model": "model",
        "checkpoints": "checkpoints",
        "history": "history.json",
        "feature_importance": "f.json",
    }
    return [
        "--data",
        str(data),
        *(word for name, file in outputs.items() for word in (f"--{name}", str(folder / file))),
    ]


def script() -> Path:
    return COMPONENTS / "tables/train_gradient_boosting/train.py"


def evaluate(data: Path, folder: Path, ranks: int) -> dict[str, Any]:
    arguments = ["--data", str(data), "--model", str(folder / "model"), "--metrics", str(folder / f"metrics{ranks}")]
    file = COMPONENTS / "tables/evaluate_table_model/evaluate.py"
    ended = run_script("evaluate_table_model", *arguments, script=file, folder=folder, ranks=ranks)
    assert ended.codes == [0] * ranks, ended.errors
    metrics: dict[str, Any] = json.loads((folder / f"metrics{ranks}/metrics.json").read_text())
    return metrics


def history(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "history.json").read_text())
    return content


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table")
    options = ["--source", "make_classification", "--row_count", "6000", "--feature_count", "12"]
    ended = run_small_script("prepare_table", *options, "--table", str(folder / "table"), folder=folder)
    assert ended.codes == [0], ended.errors
    return folder / "table"


@pytest.fixture(scope="module")
def on_three(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the outputs of a training on three ranks."""
    folder = tmp_path_factory.mktemp("three")
    ended = train(table, folder, *SETTINGS, "--save_steps", "25", ranks=3)
    assert ended.codes == [0] * 3, ended.errors
    return folder


@pytest.mark.recipe
def test_three_ranks_learn_as_one(table: Path, on_three: Path, tmp_path: Path) -> None:
    ended = train(table, tmp_path, *SETTINGS)
    assert ended.codes == [0], ended.errors
    expected = history(tmp_path)["points"][-1]["loss"]
    assert history(on_three)["points"][-1]["loss"] == pytest.approx(expected, rel=0.1)


@pytest.mark.recipe
def test_the_ranks_of_an_evaluation_add_up_to_the_same_figures(table: Path, on_three: Path) -> None:
    alone, by_two = evaluate(table, on_three, 1), evaluate(table, on_three, 2)
    assert alone["auc"] > 0.95
    assert by_two == pytest.approx(alone)
    assert alone["count"] == json.loads((table / "table.json").read_text())["counts"]["test"]


@pytest.mark.recipe
def test_what_a_training_leaves(table: Path, on_three: Path) -> None:
    import mlflow.pyfunc

    found = history(on_three)
    assert [point["step"] for point in found["points"]] == [10, 20, 30, 40, 50, 60]
    assert found["points"][-1]["loss"] < found["points"][0]["loss"]
    assert (found["world_size"], found["sample"]) == (3, "row")
    rows = json.loads((table / "table.json").read_text())["counts"]["train"]
    assert found["samples_per_step"] == found["points"][0]["samples"] == rows
    assert found["points"][0]["cpu_seconds"] > 0
    importance = json.loads((on_three / "f.json").read_text())
    assert sorted(importance) == sorted(f"feature_{index}" for index in range(12))
    assert [file.name for file in sorted((on_three / "checkpoints").iterdir())] == [
        "iteration_000000050.json",
        "iteration_000000060.json",
    ]
    model = mlflow.pyfunc.load_model(str(on_three / "model"))
    assert model.metadata.metadata == {"task": "classification", "classes": ["0", "1"]}
    assert [column.type.name for column in model.metadata.signature.inputs] == ["double"] * 12


def test_an_evicted_training_goes_on_to_the_same_trees(table: Path, on_three: Path, tmp_path: Path) -> None:
    """SIGTERM to one of three ranks: all save and end at one iteration. Two ranks continue what three have begun."""
    evaluated = ("--eval_steps", "1", "--learning_rate", "0.2", "--save_steps", "0")
    # Far more iterations than there are before the signal arrives, however busy the machine is.
    with running(table, tmp_path, *evaluated, "--num_iterations", "20000") as job:
        wait_for(lambda: "iteration 1 of" in job.output(0))
        job.processes[1].send_signal(signal.SIGTERM)
        codes = [process.wait(60) for process in job.processes]
        assert codes == [143] * 3, job.errors()
    (saved,) = (tmp_path / "checkpoints").iterdir()
    done = json.loads(saved.read_text())["progress"]["iteration"]
    total = max(60, done + 20)
    resumed = train(table, tmp_path, *evaluated, "--num_iterations", str(total), ranks=2)
    assert resumed.codes == [0, 0], resumed.errors
    points = history(tmp_path)["points"]
    assert [point["step"] for point in points] == list(range(1, total + 1))
    expected = history(on_three)["points"][-1]
    assert points[expected["step"] - 1]["loss"] == pytest.approx(expected["loss"], rel=0.1)


def test_a_killed_rank_ends_the_others_while_lightgbm_waits_for_it(table: Path, tmp_path: Path) -> None:
    with running(table, tmp_path, "--num_iterations", "100000", "--eval_steps", "50", "--save_steps", "0") as job:
        wait_for(lambda: "iteration 50 of" in job.output(0))
        job.processes[2].send_signal(signal.SIGKILL)
        codes = [process.wait(60) for process in job.processes]
    assert codes == [1, 1, -signal.SIGKILL]
    assert not (tmp_path / "model").exists()


def test_early_stopping_keeps_the_best_trees(table: Path, tmp_path: Path) -> None:
    overfitting = ("--num_iterations", "400", "--learning_rate", "0.9", "--eval_steps", "5", "--num_leaves", "63")
    ended = train(table, tmp_path, *overfitting, "--early_stopping_round", "20", "--metric", "log_loss", ranks=2)
    assert ended.codes == [0, 0], ended.errors
    points = history(tmp_path)["points"]
    best = min(points, key=lambda point: point["loss"])
    assert points[-1]["step"] == best["step"] + 20 < 400
    assert f"{best['step']} iterations, validation log_loss {best['loss']:.4f}" in ended.output
    text = (tmp_path / "model/model.lgb").read_text()
    assert text.count("\nTree=") == best["step"]


def test_own_files_with_categories_weights_and_several_classes(tmp_path: Path) -> None:
    """CSV without table.json; the model of it takes more trees in a second training."""
    generator = np.random.default_rng(0)
    for split, count in (("train", 900), ("validation", 300)):
        kind = generator.integers(0, 3, count)
        noise = generator.normal(size=count)
        columns = {"kind": kind, "noise": noise, "mass": 1.0 + kind, "class": (kind + 2 * (noise > 0)) % 3}
        (tmp_path / "data" / split).mkdir(parents=True)
        pa.csv.write_csv(pa.table(columns), tmp_path / "data" / split / "rows.csv")
    about = ["--label_column", "class", "--weight_column", "mass", "--categorical_columns", "kind"]
    about += ["--objective", "multiclass", "--num_iterations", "20", "--params", "min_data_per_group=1 cat_smooth=1"]
    first = train(tmp_path / "data", tmp_path / "first", *about)
    assert first.codes == [0], first.errors
    assert "iteration 20 of 20: validation accuracy 1.0000" in first.output
    again = train(tmp_path / "data", tmp_path / "again", *about, "--initial_model", str(tmp_path / "first/model"))
    assert again.codes == [0], again.errors
    assert (tmp_path / "again/model/model.lgb").read_text().count("\nTree=") == 2 * 20 * 3
    assert history(tmp_path / "again")["points"][0]["loss"] < history(tmp_path / "first")["points"][-1]["loss"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--label_column", "price"], "input label_column: there is no column 'price'"),
        (["--objective", "regression"], "input objective: regression for a classification with 2 classes"),
        (["--metric", "rmse"], "input metric: rmse for a classification"),
        (["--params", "leaves"], "input params: 'leaves'"),
        (["--params", "num_wings=2"], "input params: num_wings is not a parameter of LightGBM"),
        (["--params", "n_estimators=2"], "fix: set the input num_iterations"),
        (["--params", "machines=a:1"], "input params: machines is set by the component"),
        (["--params", "boosting=dart"], "input params: boosting=dart, with which an evicted training cannot resume"),
        (["--params", "boosting=rf bagging_seed=1"], "input params: boosting=rf, with which"),
        (["--params", "data_sample_strategy=goss"], "input params: data_sample_strategy=goss, with which"),
        (["--params", "use_quantized_grad=true"], "input params: use_quantized_grad, with which"),
        (["--params", "early_stopping_rounds=5"], "fix: set the input early_stopping_round"),
        (["--params", "path_smooth=-1"], "input params: LightGBM refuses the parameters: "),
        (
            ["--bagging_fraction", "0.01", "--bagging_freq", "1", "--params", "neg_bagging_fraction=0.001"],
            "neg_bagging_",
        ),
        (
            ["--num_iterations", "1000000", "--num_leaves", "9999", "--min_data_in_leaf", "1", *KEEP_MANY],
            "output checkpoints: ",
        ),
        (["--resume_from_checkpoint", "."], "input resume_from_checkpoint: . holds no checkpoint"),
        (["--initial_model", "."], "input initial_model: . cannot be loaded"),
    ],
)
def test_what_cannot_be_trained_is_refused_by_name(
    code: Importer, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    """In this process, without ranks: the checks come before the first iteration."""
    from allranks.contract.rank_env import RankEnv
    from allranks.runtime.metrics.metrics import Metrics
    from allranks.runtime.sockets import Ranks

    training = code("train_gradient_boosting", "train")
    spec = script().with_name("component.yaml")
    monkeypatch.setattr("sys.excepthook", sys.excepthook)  # the program replaces it
    monkeypatch.setattr(
        "sys.argv", ["train.py", "--spec", str(spec), *options(table, tmp_path / "outputs"), *arguments]
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        training.train(Ranks(RankEnv(), Metrics(is_main=False)))
    assert said in str(error.value)
    assert not (tmp_path / "outputs").exists()


def test_a_class_that_only_the_validation_rows_have_is_refused(code: Importer, monkeypatch: pytest.MonkeyPatch) -> None:
    from allranks.contract.rank_env import RankEnv
    from allranks.runtime.metrics.metrics import Metrics
    from allranks.runtime.sockets import Ranks

    rows = code("train_gradient_boosting", "table")
    description = Description("made", "classification", "label", ("a",))
    train, same, other = (
        rows.Rows(pa.table({"a": [0.0, 1.0]}), np.array(labels, np.float64), None)
        for labels in ([0, 1], [1, 1], [0, 2])
    )
    ranks = Ranks(RankEnv(), Metrics(is_main=False))
    assert rows.with_classes(description, train, same, ranks).classes == ("0", "1")
    with pytest.raises(InputError, match="input label_column: labels up to 2 in validation"):
        rows.with_classes(description, train, other, ranks)


def running(data: Path, folder: Path, *arguments: str) -> AbstractContextManager[Running]:
    """Three ranks of a training. What is left of them is killed at the end of the block."""
    return running_script(
        "train_gradient_boosting", *options(data, folder), *arguments, script=script(), folder=folder, ranks=3
    )


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
