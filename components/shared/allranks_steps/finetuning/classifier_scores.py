"""Score a classifier of texts on all ranks, each text once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from allranks_steps.text.each_once import each_once

Record = dict[str, Any]


def predict(
    model: Any,
    examples: Sequence[Record],
    batch_size: int,
    tokenizer: Any,
    device: torch.device,
    after_batch: Callable[[], object] = lambda: None,
) -> Tensor:
    """Return the prediction and the loss of each example, (len(examples), 2) float64 on every rank. A collective.

    after_batch: called after each batch, on every rank

    The prediction is the number of the likeliest label, or the predicted number of a model with one label.
    """

    def compute(batch: list[Record]) -> Tensor:
        inputs = tokenizer.pad([{"input_ids": example["input_ids"]} for example in batch], return_tensors="pt")
        logits = model(**{name: tensor.to(device) for name, tensor in inputs.items()}).logits.float()
        labels = torch.tensor([example["labels"] for example in batch], device=device)
        if logits.shape[1] == 1:
            values = logits[:, 0]
            return torch.stack([values, (values - labels.float()) ** 2], dim=1)
        losses = functional.cross_entropy(logits, labels.long(), reduction="none")
        return torch.stack([logits.argmax(dim=1).float(), losses], dim=1)

    return each_once(model, examples, 2, batch_size, compute, after_batch)


def metrics(table: Tensor, labels: Sequence[float], *, regression: bool) -> dict[str, float]:
    """Return the figures of all predictions.

    Of labels: count, loss (nats), accuracy, f1 (the mean over labels), mcc (Matthews correlation). Of numbers: count,
    loss (squared error), mae, pearson (0 if all predictions are the same).
    """
    predicted, truth = table[:, 0].numpy(), np.asarray(labels, dtype=np.float64)
    result: dict[str, float] = {"count": len(truth), "loss": table[:, 1].mean().item()}
    if regression:
        varies = predicted.std() > 0 and truth.std() > 0
        pearson = float(np.corrcoef(predicted, truth)[0, 1]) if varies else 0.0
        return result | {"mae": float(np.abs(predicted - truth).mean()), "pearson": pearson}
    from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

    return result | {
        "accuracy": float(accuracy_score(truth, predicted)),
        "f1": float(f1_score(truth, predicted, average="macro", zero_division=0)),
        "mcc": float(matthews_corrcoef(truth, predicted)),
    }


def confusion(table: Tensor, labels: Sequence[float], names: Sequence[str]) -> dict[str, Any]:
    """Return how many examples of each label (row) got each label (column), in the format that Azure ML draws."""
    matrix = torch.zeros(len(names), len(names), dtype=torch.long)
    truth = torch.as_tensor(list(labels)).long()
    matrix.index_put_((truth, table[:, 0].long()), torch.ones_like(truth), accumulate=True)
    return {
        "schema_type": "confusion_matrix",
        "schema_version": "v1",
        "data": {"class_labels": list(names), "matrix": matrix.tolist()},
    }
