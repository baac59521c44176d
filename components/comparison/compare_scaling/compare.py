"""Compare trainings of one model on different numbers of instances, and write a page."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import page
from histories import BadHistory, read
from notes import notes
from scaling import Study, study

HISTORIES = 8
"""Number of history inputs: a component has a fixed number of inputs."""


def compare(
    histories: Sequence[Path],
    output: Path,
    *,
    title: str,
    warm_up_steps: int,
    min_efficiency: float,
    price_per_hour: float | None,
) -> Study:
    """Write scaling.html and scaling.json. Raise BadHistory before anything is written."""
    trainings = read(histories, warm_up_steps)
    result = study(trainings, min_efficiency, price_per_hour)
    content = page.html(title, result, trainings, warm_up_steps)
    texts = {"verdict": page.verdict(result), "notes": notes(trainings, result)}
    figures = json.dumps(texts | asdict(result), indent=2) + "\n"
    # Files in ./outputs become the run's artifacts, which Azure ML's studio shows.
    for folder in (output, Path("outputs")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "scaling.html").write_text(content, encoding="utf-8")
        (folder / "scaling.json").write_text(figures, encoding="utf-8")
    return result


def main() -> None:
    args = arguments()
    histories = [getattr(args, f"history_{number}") for number in range(1, HISTORIES + 1)]
    try:
        result = compare(
            [history for history in histories if history],
            args.scaling,
            title=args.title,
            warm_up_steps=args.warm_up_steps,
            min_efficiency=args.min_efficiency,
            price_per_hour=args.price_per_hour,
        )
    except BadHistory as error:
        print(f"compare_scaling: {error}", file=sys.stderr)
        sys.exit(2)
    for row in result.rows:
        print(
            f"{row.instance_count} x {row.world_size // row.instance_count} ranks: {row.throughput:,.0f} "
            f"{result.sample}s a second, efficiency {row.efficiency:.0%}"
        )
    print(page.verdict(result))


def arguments() -> argparse.Namespace:
    """Parse the inputs and outputs that component.yaml describes."""
    parser = argparse.ArgumentParser(description=__doc__)
    for number in range(1, HISTORIES + 1):
        parser.add_argument(f"--history_{number}", type=Path, required=number == 1)
    parser.add_argument("--title", default="Scaling")
    parser.add_argument("--warm_up_steps", type=int, default=10)
    parser.add_argument("--min_efficiency", type=float, default=0.7)
    parser.add_argument("--price_per_hour", type=float)
    parser.add_argument("--scaling", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
