"""Load a model that classifies texts or predicts a number for them, and score it on all ranks."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from transformers import AutoModelForSequenceClassification

from allranks_steps.text.model_folder import ModelFolder, load_weights
from allranks_steps.text.scoring import Record, score_batches


def load(folder: ModelFolder, pad_token_id: int, **config: Any) -> Any:
    """Load the model. A base model gets a new layer for the labels.

    config: of a new layer: num_labels, id2label, label2id, problem_type

    Raise InputError if Transformers has no classifier of this kind, or weights other than the last layers' are missing.
    """
    return load_weights(
        AutoModelForSequenceClassification,
        folder,
        may_miss=lambda model, name: bool(config) and _is_new(model, name),
        dtype=torch.float32,
        ignore_mismatched_sizes=bool(config),
        pad_token_id=pad_token_id,
        **config,
    )


def _is_new(model: Any, name: str) -> bool:
    # A model that was pre-trained on masked tokens has no pooler, which is trained with the layer for the labels.
    return not name.startswith(f"{model.base_model_prefix}.") or "pooler" in name


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

    A prediction is the index of the most likely label, or the value that a model with one label predicts.
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

    return score_batches(model, examples, 2, batch_size, compute, after_batch)


def metrics(table: Tensor, labels: Sequence[float], *, regression: bool) -> dict[str, float]:
    """Return the figures of all predictions.

    Classification: count, loss (nats), accuracy, f1 (the mean over labels), mcc (Matthews correlation). Regression:
    count, loss (squared error), mae, pearson (0 if all predictions are the same).
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
