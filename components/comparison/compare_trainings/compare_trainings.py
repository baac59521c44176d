"""Compare the trainings of one model on a page."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace

import page
from figures import rows

from allranks.runtime import arguments
from allranks_steps.charts import sheet
from allranks_steps.messages import bad_input
from allranks_steps.trainings import Training, read

NEEDED = ("strategy", "launcher", "parameters", "loss", "peak_memory")


def main() -> None:
    args = arguments()
    files = [file for name, file in vars(args).items() if name.startswith("history_") and file]
    trainings = unique_names([read(file, NEEDED) for file in files])
    if not trainings:
        fix = "connect history_1 with the output `history` of a training"
        raise bad_input("compare_trainings", "no history is given", "at least one", fix)
    compared = rows(trainings)
    texts = {
        "comparison.html": page.html(args.title, trainings, compared),
        "comparison.json": json.dumps([asdict(row) for row in compared], indent=2) + "\n",
    }
    sheet.write(args.comparison, texts)
    for row in compared:
        print(f"{row.name}: loss {row.loss:.4f}, {row.step_seconds:.3f} s a step, {row.peak_memory:.0f} MiB")


def unique_names(trainings: Sequence[Training]) -> list[Training]:
    """Return the trainings, with a number added to names that several trainings have."""
    names = [training.name for training in trainings]
    return [
        replace(each, name=f"{each.name} ({names[: index + 1].count(each.name)})")
        if names.count(each.name) > 1
        else each
        for index, each in enumerate(trainings)
    ]


if __name__ == "__main__":
    main()
