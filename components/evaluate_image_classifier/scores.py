"""Metrics of a confusion matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def scores(confusion: NDArray[np.int64], classes: tuple[str, ...]) -> dict[str, Any]:
    """Return count, accuracy, macro_f1, and each class's precision, recall, f1 and count.

    confusion: (classes, classes), rows by true class, columns by predicted class. A ratio with denominator 0 is 0.
    """
    correct = np.diagonal(confusion)
    present, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
    precision, recall = ratio(correct, predicted), ratio(correct, present)
    f1 = ratio(2 * correct, present + predicted)
    return {
        "count": int(confusion.sum()),
        "accuracy": float(ratio(correct.sum(), confusion.sum())),
        "macro_f1": float(f1.mean()),
        "classes": {
            name: {
                "precision": float(precision[index]),
                "recall": float(recall[index]),
                "f1": float(f1[index]),
                "count": int(present[index]),
            }
            for index, name in enumerate(classes)
        },
    }


def ratio(part: NDArray[np.int64], whole: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.divide(part, whole, out=np.zeros(np.shape(whole)), where=np.asarray(whole) > 0)


def confusion_matrix_document(confusion: NDArray[np.int64], classes: tuple[str, ...]) -> dict[str, Any]:
    """Return the matrix in the format that Azure ML draws."""
    return {
        "schema_type": "confusion_matrix",
        "schema_version": "v1",
        "data": {"class_labels": list(classes), "matrix": confusion.tolist()},
    }
