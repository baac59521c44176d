"""Put the trainings of one model on one page."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, replace

import page
from figures import rows

from allranks.errors import InputError, Problem
from allranks.runtime import arguments
from allranks_steps.charts import sheet
from allranks_steps.trainings import Training, read

NEEDED = ("strategy", "launcher", "parameters", "loss", "peak_memory")


def main() -> None:
    args = arguments()
    files = [file for name, file in vars(args).items() if name.startswith("history_") and file]
    trainings = unique_names([read(file, NEEDED) for file in files])
    if not trainings:
        fix = "connect history_1 with the output `history` of a training"
        raise InputError(Problem("compare_trainings", "no history is given", "at least one", fix))
    compared = rows(trainings)
    texts = {
        "comparison.html": page.html(args.title, trainings, compared),
        "comparison.json": json.dumps([asdict(row) for row in compared], indent=2) + "\n",
    }
    sheet.write(args.comparison, texts)
    for row in compared:
        print(f"{row.name}: loss {row.loss:.4f}, {row.step_seconds:.3f} s a step, {row.peak_memory:.0f} MiB")


def unique_names(trainings: list[Training]) -> list[Training]:
    """Return the trainings, with a number added to each name that several have."""
    uses, counted = Counter(training.name for training in trainings), Counter[str]()
    for index, training in enumerate(trainings):
        counted[training.name] += 1
        if uses[training.name] > 1:
            trainings[index] = replace(training, name=f"{training.name} ({counted[training.name]})")
    return trainings


if __name__ == "__main__":
    main()
