"""Metrics of an evaluation, and its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allranks.runtime import Metrics
from allranks_steps.json_files import confusion_document, write_json


@dataclass(frozen=True)
class Counts:
    """The predictions of a model, counted over all ranks.

    present, predicted, correct: images of each class, predictions of it, and correct ones, (classes,)
    confusion: (classes, classes), rows by true class, columns by predicted class; None if there are too many classes
    loss:      sum of the cross-entropy over the images
    top5:      images whose class is among the five with the highest scores
    """

    present: NDArray[np.int64]
    predicted: NDArray[np.int64]
    correct: NDArray[np.int64]
    confusion: NDArray[np.int64] | None
    loss: float
    top5: float

    @classmethod
    def from_matrix(cls, confusion: NDArray[np.int64], loss: float = 0.0, top5: float = 0.0) -> Counts:
        """Return the counts of a confusion matrix."""
        return cls(confusion.sum(axis=1), confusion.sum(axis=0), np.diagonal(confusion), confusion, loss, top5)


def scores(counts: Counts) -> dict[str, Any]:
    """Return count, accuracy, top5_accuracy, macro_f1 and loss. A ratio with denominator 0 is 0."""
    count = int(counts.present.sum())
    return {
        "count": count,
        "accuracy": float(ratio(counts.correct.sum(), count)),
        "top5_accuracy": counts.top5 / max(1, count),
        "macro_f1": float(ratio(2 * counts.correct, counts.present + counts.predicted).mean()),
        "loss": counts.loss / max(1, count),
    }


def report(
    folder: Path,
    counts: Counts,
    *,
    split: str,
    source: str,
    classes: tuple[str, ...],
    metrics: Metrics,
    further: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write the outputs of an evaluation, log its metrics, and return the content of metrics.json.

    further: metrics to add
    """
    content = {"split": split, "source": source} | scores(counts) | dict(further or {})
    write_json(folder / "metrics.json", content)
    write_json(folder / "classes.json", class_scores(counts, classes))
    if counts.confusion is not None:
        matrix = confusion_document(counts.confusion, classes)
        # Files in ./outputs become the run's artifacts, from which Azure ML's studio draws the matrix.
        for place in (folder, Path("outputs")):
            write_json(place / "confusion_matrix.json", matrix)
        metrics.log_dict(matrix, "confusion_matrix.json")
    logged = ("accuracy", "top5_accuracy", "macro_f1", "loss")
    metrics.log({f"{split}_{name}": content[name] for name in logged}, step=0)
    return content


def class_scores(counts: Counts, classes: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Return each class's precision, recall (its accuracy), f1 and count. A ratio with denominator 0 is 0."""
    precision, recall = ratio(counts.correct, counts.predicted), ratio(counts.correct, counts.present)
    f1 = ratio(2 * counts.correct, counts.present + counts.predicted)
    return {
        name: {
            "precision": float(precision[index]),
            "recall": float(recall[index]),
            "f1": float(f1[index]),
            "count": int(counts.present[index]),
        }
        for index, name in enumerate(classes)
    }


def ratio(part: Any, whole: Any) -> NDArray[np.float64]:
    result: NDArray[np.float64] = np.divide(part, whole, out=np.zeros(np.shape(whole)), where=np.asarray(whole) > 0)
    return result
