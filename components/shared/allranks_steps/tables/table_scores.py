"""Metrics of predictions for a table, weighted where rows have weights."""

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

Floats = NDArray[np.floating]


def classification_scores(
    labels: NDArray[np.integer], probabilities: Floats, weights: Floats | None = None
) -> dict[str, float]:
    """Return accuracy, macro_f1, log_loss and auc.

    labels: (rows,), indices of classes; probabilities: (rows, classes); weights: (rows,)

    auc is the area under the ROC curve; of more than two classes the mean over one class against the rest. It is left
    out if the rows do not have all classes.
    """
    count = probabilities.shape[1]
    predicted, every = probabilities.argmax(axis=1), range(count)
    # Sums differ from 1 by rounding, of float32 for instance.
    certain = probabilities / probabilities.sum(axis=1, keepdims=True)
    scores = {
        "accuracy": metrics.accuracy_score(labels, predicted, sample_weight=weights),
        "macro_f1": metrics.f1_score(
            labels, predicted, labels=list(every), average="macro", sample_weight=weights, zero_division=0
        ),
        "log_loss": metrics.log_loss(labels, certain, labels=list(every), sample_weight=weights),
    }
    if len(np.unique(labels)) == count:
        if count == 2:
            scores["auc"] = metrics.roc_auc_score(labels, probabilities[:, 1], sample_weight=weights)
        else:
            areas = (metrics.roc_auc_score(labels == i, probabilities[:, i], sample_weight=weights) for i in every)
            scores["auc"] = np.mean(list(areas))
    return {name: float(value) for name, value in scores.items()}


def regression_scores(labels: Floats, predictions: Floats, weights: Floats | None = None) -> dict[str, float]:
    """Return rmse, mae and r2. All are (rows,)."""
    return {
        "rmse": float(metrics.root_mean_squared_error(labels, predictions, sample_weight=weights)),
        "mae": float(metrics.mean_absolute_error(labels, predictions, sample_weight=weights)),
        "r2": float(metrics.r2_score(labels, predictions, sample_weight=weights)),
    }


def as_probabilities(predictions: Floats) -> Floats:
    """Return a probability for each class, (rows, classes). predictions: the same, or of two classes the second's."""
    return np.column_stack([1 - predictions, predictions]) if predictions.ndim == 1 else predictions
