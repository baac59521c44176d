"""The rate at which our recipes train: train_image_classifier and train_language_model, as the components run them, and
loops of the same model written by hand, with Accelerate and with Lightning Fabric.

The recipe's own train.py runs. Its loader, when it is asked for the batch after a block of 10 steps, lets each of the
other loops take a block. So the recipe's time has all that it does in a step: the loader and what it counts for a
resume, the metrics every 10 steps with the mean loss over the ranks, the history, the learning rate schedule, clipping.
No checkpoint and no validation is due. The other loops only train, with the same schedule and clipping. See
ranks/recipe_steps.py.

The loop written by hand trains the recipe's own model, with a loader of the same kind. The others train copies of it:
"torch" with torch's DataLoader and DistributedDataParallel, Accelerate and Fabric with theirs. A copy may be 10 %
slower or faster than another, depending on where its memory lies (see runtime.py), so these are for information. Two
ranks have a core each. The value of the peer is the median over its blocks in all launches, and ours is compared with
the peer's block of the same turn.

TRAINING_CASES=language measures some of the cases, TRAINING_BLOCKS=50 with so many blocks in a launch. All cases take
20 minutes.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import torchrun
from bench.figures import Figure, finish
from bench.recipes import IMAGES, TEXT, Recipe

LAUNCHES = 3
GOAL = 0.99
PEER = "by hand"
OTHERS = ("torch", "accelerate", "fabric")


@dataclass(frozen=True)
class Case:
    """A training. batch_size: samples of a rank in a step; each: what a sample counts for in the rate"""

    recipe: Recipe
    batch_size: int
    blocks: int
    arguments: Sequence[str]
    each: int = 1


CASES = {
    "small-images": Case(IMAGES, 32, 25, ("--preset", "convnextv2_micro", "--image_size", "8")),
    "images": Case(IMAGES, 32, 4, ("--preset", "convnextv2_micro", "--image_size", "32")),
    "language": Case(TEXT, 2, 4, ("--model_size", "3M", "--max_seq_length", "128"), each=128),
}


def main() -> None:
    names = os.environ.get("TRAINING_CASES", ",".join(CASES)).split(",")
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            case = CASES[name]
            data = case.recipe.write_data(Path(folder, name))
            times = _times(name, case, data, Path(folder))
            for peer in (PEER, *OTHERS):
                ours, theirs = torchrun.compared(times["ours"], times[peer])
                samples = torchrun.RANKS * case.batch_size * case.each
                label = f"{name}, {case.recipe.unit} (peer: {'torch, a model of its own' if peer == 'torch' else peer})"
                goal = GOAL if peer == PEER else None
                figures.append(Figure(label, samples / ours, samples / theirs, goal, of="ratio", at_least=True))
    finish("The rate of the recipes' training", figures)


def _times(name: str, case: Case, data: Path, folder: Path) -> dict[str, list[float]]:
    """Return the seconds of a step of each loop, in all blocks of all launches."""
    blocks = os.environ.get("TRAINING_BLOCKS", str(case.blocks))
    times: dict[str, list[float]] = {loop: [] for loop in ("ours", PEER, *OTHERS)}
    for number in range(LAUNCHES):
        # The copies of the model are made in another order each time.
        others = [*OTHERS[number % len(OTHERS) :], *OTHERS[: number % len(OTHERS)]]
        print(f"{name}, launch {number + 1} of {LAUNCHES} ...", file=sys.stderr)
        outputs = [f"--{output}={folder / output}" for output in ("model", "checkpoints", "history")]
        arguments = [f"--data={data}", f"--per_device_train_batch_size={case.batch_size}", *case.arguments, *outputs]
        loops = ",".join((PEER, *others))
        measured = torchrun.measured("recipe_steps.py", case.recipe.name, blocks, loops, *arguments)
        for loop, seconds in measured["times"].items():
            times[loop] += seconds
    return times


if __name__ == "__main__":
    main()
