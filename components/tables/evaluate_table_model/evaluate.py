"""Score a model of tables on the test rows, divided over the ranks. Each row is counted once."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from allranks import runtime
from allranks.runtime import sockets
from allranks_steps.json_files import write_json
from allranks_steps.messages import bad_input, first_line
from allranks_steps.models.mlmodel import load_model, read_mlmodel
from allranks_steps.tables.prepared_table import REGRESSION, Description, read_description, read_rows
from allranks_steps.tables.table_scores import as_probabilities, classification_scores, regression_scores

FIX = "give the output `model` of train_gradient_boosting, or another model that does the same"


def evaluate(ranks: sockets.Ranks) -> None:
    args = runtime.arguments()
    import mlflow.pyfunc  # takes seconds, so after the check of the arguments

    description = read_description(args.data)
    if description is None:
        fix = "give the output `table` of prepare_table"
        raise bad_input("input data", f"{args.data} holds no table.json", fix=fix)
    rows = read_rows(args.data, args.split, description, ranks.rank, ranks.world_size)
    read_mlmodel(args.model, fix=FIX)
    model = load_model(mlflow.pyfunc, args.model, fix=FIX)
    predictions = [
        predict(model, rows.slice(start, args.per_device_eval_batch_size), description)
        for start in range(0, max(len(rows), 1), args.per_device_eval_batch_size)
    ]
    gathered = ranks.gather_arrays(np.concatenate(predictions))
    labels = ranks.gather_arrays(rows[description.label].to_numpy().astype(np.float64))
    weights = ranks.gather_arrays(rows[description.weight].to_numpy()) if description.weight else None
    if gathered is None or labels is None:
        return
    scores = score(np.concatenate(labels), np.concatenate(gathered), weights, description)
    count = sum(map(len, labels))
    metrics = {"split": args.split, "source": description.source, "count": count} | scores
    write_json(args.metrics / "metrics.json", metrics)
    ranks.metrics.log({f"{args.split}_{name}": value for name, value in scores.items()}, step=0)
    text = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
    print(f"{args.split}: {text} on {count} rows", flush=True)


def predict(model: Any, rows: pa.Table, description: Description) -> NDArray[np.floating]:
    """Return the model's predictions: (rows, classes), (rows,) of two classes, or (rows,) of a regression.

    Raise InputError if the model does not take these rows, or returns other values.
    """
    classes = len(description.classes)
    if not len(rows):
        return np.zeros((0, classes) if classes > 2 else 0)
    frame = rows.select(list(description.features)).to_pandas().astype("float64")
    try:
        predictions = np.asarray(model.predict(frame), dtype=np.float64)
    except Exception as error:  # whatever the model raises for columns that are not its own
        found = f"it fails on the rows: {first_line(error)}"
        raise bad_input("input model", found, "a model that takes the columns of the data", FIX) from error
    shapes: list[tuple[int, ...]] = [(len(rows), classes)] if classes else []
    if classes in (0, 2):
        shapes.append((len(rows),))
    if predictions.shape not in shapes:
        found = f"for {len(rows)} rows it gives numbers of shape {predictions.shape}"
        expected = f"a probability for each of {classes} classes" if classes else "a number for each row"
        raise bad_input("input model", found, expected, FIX)
    if classes and not (np.all(predictions >= 0) and np.all(predictions <= 1 + 1e-6)):
        raise bad_input("input model", "it gives numbers that are not probabilities", "from 0 to 1", FIX)
    return predictions


def score(
    labels: NDArray[np.floating],
    predictions: NDArray[np.floating],
    weights: list[NDArray[Any]] | None,
    description: Description,
) -> dict[str, float]:
    everything = np.concatenate(weights) if weights else None
    if description.task == REGRESSION:
        return regression_scores(labels, predictions, everything)
    return classification_scores(labels.astype(np.int64), as_probabilities(predictions), everything)


if __name__ == "__main__":
    sockets.main(evaluate)
