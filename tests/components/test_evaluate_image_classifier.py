"""evaluate_image_classifier: scores of a confusion matrix, exact on any number of ranks, and the whole as a process."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from component_processes import evaluate, run_script

from allranks.errors import InputError
from allranks_steps.images import scores

Importer = Callable[[str, str], Any]

COUNT = """
import numpy as np, torch
from allranks import runtime
from evaluate import count
from allranks_steps.images.image_data.images import ArrayImages
from allranks_steps.images.image_data.batches import evaluation_loader
from allranks_steps.images.prepared_images import Images

def main(ranks):
    # A model that knows the class from the first pixel, and is wrong where the second one says so.
    def model(pixels):
        return torch.nn.functional.one_hot((pixels[:, 0, 0, 0].long() + pixels[:, 0, 0, 1].long()) % CLASSES, CLASSES)
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 5, 101)
    wrong = generator.integers(0, 3, 101) == 0
    pixels = np.stack([labels, wrong], axis=1).astype(np.uint8).reshape(101, 1, 1, 2)
    images = ArrayImages(Images(pixels, labels))
    expected = np.zeros((5, 5), int)
    np.add.at(expected, (labels, (labels + wrong) % 5), 1)
    for CLASSES in (5, 1001):
        globals()["CLASSES"] = CLASSES
        loader = evaluation_loader(images, None, ranks, per_device_batch_size=7, num_workers=0)
        found = count(model, loader, CLASSES, ranks)
        assert found.present[:5].tolist() == np.bincount(labels).tolist(), (ranks.rank, found)
        assert found.correct.sum() == (~wrong).sum(), (ranks.rank, found)
        if CLASSES == 5:
            assert found.confusion.tolist() == expected.tolist(), (ranks.rank, found)
            assert found.top5 == 101
        else:
            assert found.confusion is None

runtime.main(main)
"""


def test_scores_of_a_confusion_matrix() -> None:
    counts = scores.Counts.from_matrix(np.array([[3, 1, 0], [2, 2, 0], [0, 0, 0]]), loss=4.0, top5=8)
    found = scores.scores(counts)
    assert found["count"] == 8
    assert found["accuracy"] == pytest.approx(5 / 8)
    assert found["macro_f1"] == pytest.approx((2 / 3 + 4 / 7) / 3)
    assert (found["loss"], found["top5_accuracy"]) == (0.5, 1.0)
    classes = scores.class_scores(counts, ("a", "b", "c"))
    assert classes["a"] == pytest.approx({"precision": 3 / 5, "recall": 3 / 4, "f1": 2 / 3, "count": 4})
    assert classes["b"] == pytest.approx({"precision": 2 / 3, "recall": 1 / 2, "f1": 4 / 7, "count": 4})
    assert classes["c"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "count": 0}


@pytest.mark.recipe
def test_every_image_counts_once_where_ranks_have_unequal_shares(tmp_path: Path) -> None:
    script = tmp_path / "count.py"
    script.write_text(COUNT)
    ended = run_script("evaluate_image_classifier", script=script, folder=tmp_path / "run", ranks=2)
    assert ended.codes == [0, 0], ended.errors


@pytest.fixture(scope="module")
def evaluated(digits: Path, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what one process found, with the model as its own baseline."""
    folder = tmp_path_factory.mktemp("evaluated")
    ended = evaluate(digits, trained / "model", folder, "--baseline", str(trained / "model"))
    assert ended.codes == [0], ended.errors
    return folder


@pytest.mark.slow
def test_one_process_evaluates_what_two_ranks_trained(digits: Path, evaluated: Path) -> None:
    metrics = json.loads((evaluated / "metrics/metrics.json").read_text())
    assert metrics["accuracy"] >= 0.9
    assert metrics["source"] == "digits"
    assert metrics | metrics["baseline"] == metrics
    assert metrics["count"] == json.loads((digits / "dataset.json").read_text())["counts"]["test"]
    drawn = json.loads((evaluated / "outputs/confusion_matrix.json").read_text())
    assert drawn == json.loads((evaluated / "metrics/confusion_matrix.json").read_text())
    assert drawn["schema_type"] == "confusion_matrix"
    assert drawn["schema_version"] == "v1"
    assert drawn["data"]["class_labels"] == list("0123456789")
    assert np.sum(drawn["data"]["matrix"]) == metrics["count"]
    assert np.trace(drawn["data"]["matrix"]) == round(metrics["accuracy"] * metrics["count"])


PYTORCH = {"pytorch": {"model_data": "data", "pytorch_version": "2.0"}}


def signature(kind: str, *shape: int) -> dict[str, str]:
    spec = [{"type": "tensor", "tensor-spec": {"dtype": kind, "shape": [-1, *shape]}}]
    return {"inputs": json.dumps(spec), "outputs": json.dumps(spec)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("described", "said"),
    [
        (None, "holds no file MLmodel"),
        ({"flavors": {"sklearn": {}, "python_function": {}}}, "a model of the flavor sklearn"),
        ({"flavors": PYTORCH, "signature": signature("float32", 1, 8, 8)}, "it takes float32 of shape (-1, 1, 8, 8)"),
        ({"flavors": PYTORCH, "signature": signature("uint8", 3, 32, 32)}, "it takes uint8 of shape (-1, 3, 32, 32)"),
        ({"flavors": PYTORCH, "signature": signature("uint8", 1, 8, 8)}, "cannot be loaded"),
        ("not a model", "names no flavors"),
    ],
    ids=["no model", "another library", "other numbers", "other images", "no weights", "no description"],
)
def test_a_model_of_another_kind_is_refused(
    code: Importer, tmp_path: Path, described: dict[str, Any] | str | None, said: str
) -> None:
    if described is not None:
        (tmp_path / "MLmodel").write_text(json.dumps(described))
    data = SimpleNamespace(classes=tuple("0123456789"), channels=1, size=(8, 8))
    with pytest.raises(InputError, match=r"^input model: ") as error:
        code("evaluate_image_classifier", "loading").load(tmp_path, data, torch.device("cpu"), "model")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (lambda pixels: pixels.float(), "for 2 images it gives numbers of shape (2, 1, 4, 4)"),
        (lambda pixels: pixels @ 1, "it fails on pixels: "),
        (lambda pixels: {"scores": pixels}, "it gives a dict"),
    ],
)
def test_a_model_that_gives_something_else_than_scores_is_refused(code: Importer, model: Any, said: str) -> None:
    check = code("evaluate_image_classifier", "loading")._check_scores
    check(lambda pixels: pixels.flatten(1).float()[:, :2], (1, 4, 4), 2, torch.device("cpu"), "baseline")
    with pytest.raises(InputError, match=r"^input baseline: ") as error:
        check(model, (1, 4, 4), 2, torch.device("cpu"), "baseline")
    assert said in str(error.value)


@pytest.mark.recipe
def test_two_ranks_find_what_one_process_finds(digits: Path, trained: Path, evaluated: Path, tmp_path: Path) -> None:
    ended = evaluate(digits, trained / "model", tmp_path, ranks=2)
    assert ended.codes == [0, 0], ended.errors
    one, two = (json.loads((folder / "metrics/metrics.json").read_text()) for folder in (evaluated, tmp_path))
    one.pop("baseline")
    assert one.pop("loss") == pytest.approx(two.pop("loss"))
    assert one == two
