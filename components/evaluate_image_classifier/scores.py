"""What a confusion matrix says."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def scores(confusion: NDArray[np.int64], classes: tuple[str, ...]) -> dict[str, Any]:
    """Count, accuracy, macro_f1, and each class's precision, recall, f1 and count.

    confusion: (classes, classes), rows by true class, columns by predicted class. A ratio of nothing counts as 0.
    """
    right = np.diagonal(confusion)
    present, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
    precision, recall = ratio(right, predicted), ratio(right, present)
    f1 = ratio(2 * right, present + predicted)
    return {
        "count": int(confusion.sum()),
        "accuracy": float(ratio(right.sum(), confusion.sum())),
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
    """The matrix in the format that Azure ML draws."""
    return {
        "schema_type": "confusion_matrix",
        "schema_version": "v1",
        "data": {"class_labels": list(classes), "matrix": confusion.tolist()},
    }
