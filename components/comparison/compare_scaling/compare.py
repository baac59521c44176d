"""Compare trainings of one model on different numbers of instances, and write a page."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import page
from notes import notes
from scaling import study

from allranks.runtime import arguments
from allranks_steps.charts import sheet
from allranks_steps.messages import bad_input
from allranks_steps.trainings import Training, read


def main() -> None:
    args = arguments()
    files = [file for name, file in vars(args).items() if name.startswith("history_") and file]
    trainings = measured(files, args.warm_up_steps)
    result = study(trainings, args.min_efficiency, args.price_per_hour)
    figures = {"verdict": page.verdict(result), "notes": [*notes(trainings, result)]} | asdict(result)
    texts = {
        "scaling.html": page.html(args.title, result, trainings, args.warm_up_steps),
        "scaling.json": json.dumps(figures, indent=2) + "\n",
    }
    sheet.write(args.scaling, texts)
    for row in result.rows:
        print(
            f"{row.instance_count} x {row.world_size // row.instance_count} ranks: {row.throughput:,.0f} "
            f"{result.sample}s a second, efficiency {row.efficiency:.0%}"
        )
    print(page.verdict(result))


def measured(files: Iterable[Path], warm_up_steps: int) -> list[Training]:
    """Return the trainings without their warm-up, in ascending order of instances.

    Raise InputError if a file is not a history, nothing is left of one, or they are not of one training on different
    numbers of instances.
    """
    trainings: dict[int, Training] = {}
    for file in files:
        training = read(file, ("instance_count",)).without_warm_up(warm_up_steps)
        if training is None:
            found = f"has no step after the first {warm_up_steps}, which are left out"
            raise bad_input(str(file), found, fix="train for more steps, or lower warm_up_steps")
        count = training.instance_count
        if count in trainings:
            found = f"several of them have instance_count {count}"
            raise bad_input("the histories", found, "one for each number of instances")
        trainings[count] = training
    samples = sorted({training.sample for training in trainings.values()})
    if len(samples) > 1:
        raise bad_input("the histories", f"they count {' and '.join(samples)}", "histories of one training")
    return [trainings[count] for count in sorted(trainings)]


if __name__ == "__main__":
    main()
