"""The metrics of the validation rows of all ranks."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from table import Rows

from allranks.runtime.sockets import Ranks
from allranks_steps.tables.prepared_table import REGRESSION, Description
from allranks_steps.tables.table_scores import as_probabilities, classification_scores, regression_scores

HIGHER_IS_BETTER = {"auc": True, "accuracy": True, "macro_f1": True, "log_loss": False, "rmse": False, "mae": False}
"""Metrics for early stopping."""

LOSS = {True: "rmse", False: "log_loss"}
"""Metric that a history contains as the loss. True: for a regression."""


def default_metric(description: Description) -> str:
    if description.task == REGRESSION:
        return "rmse"
    return "auc" if len(description.classes) == 2 else "log_loss"


class Validation:
    """Computes metrics over all ranks, each row once. Rank 0 gathers the predictions: some megabytes for a million
    rows."""

    def __init__(self, rows: Rows, description: Description, ranks: Ranks) -> None:
        self._ranks = ranks
        self._regression = description.task == REGRESSION
        self._labels = self._all(rows.label)
        self._weights = self._all(rows.weight) if rows.weight is not None else None

    def scores(self, predictions: NDArray[Any]) -> Mapping[str, float]:
        """Return the metrics of this iteration on every rank. A collective. predictions: of this rank's rows"""
        everything = self._all(predictions)
        scores = None
        if everything is not None and self._labels is not None:
            if self._regression:
                scores = regression_scores(self._labels, everything, self._weights)
            else:
                labels = self._labels.astype(np.int64)
                scores = classification_scores(labels, as_probabilities(everything), self._weights)
        return dict(self._ranks.broadcast(scores))

    def _all(self, array: NDArray[Any]) -> NDArray[Any] | None:
        gathered = self._ranks.gather_arrays(array)
        return None if gathered is None else np.concatenate(gathered)
