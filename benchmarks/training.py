"""The rate at which our recipes train: train_image_classifier and train_language_model, as the components run them, and
loops of the same model written by hand, with Accelerate and with Lightning Fabric.

The recipe's own train.py runs. Its loader, when it is asked for the batch after a block of 10 steps, lets the other
loops take a block. So the recipe's time has all that it does in a step: the loader and what it counts for a
resume, the metrics every 10 steps with the mean loss over the ranks, the history, the learning rate schedule, clipping.
No checkpoint and no validation is due. The other loops only train, with the same schedule and clipping. See
ranks/recipe_steps.py.

The loop written by hand trains the recipe's own model, with a loader of the same kind. The others train copies of it:
"torch" with torch's DataLoader and DistributedDataParallel, Accelerate and Fabric with theirs. A copy may be 10 %
slower or faster than another, depending on where its memory lies (see runtime.py), so these are for information. Two
ranks have a core each. Ours is compared with the peer's block of the same turn. On a machine that shares its processors
with others, the times of single blocks vary by 5 to 10 %; that is why the loop written by hand takes hundreds of turns,
and the others a fifth as many.

TRAINING_CASES=language measures some of the cases, TRAINING_TURNS=500 in so many turns of a launch. All cases take
16 minutes.
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
TURNS = 85
GOAL = 0.99
PEER = "by hand"
OTHERS = ("torch", "accelerate", "fabric")


@dataclass(frozen=True)
class Case:
    """A training. batch_size: samples of a rank in a step; each: what a sample counts for in the rate"""

    recipe: Recipe
    batch_size: int
    arguments: Sequence[str]
    each: int = 1


CASES = {
    "small-images": Case(IMAGES, 32, ("--preset", "convnextv2_micro", "--image_size", "8")),
    "images": Case(IMAGES, 16, ("--preset", "convnextv2_micro", "--image_size", "16")),
    "language": Case(TEXT, 1, ("--model_size", "3M", "--max_seq_length", "64"), each=64),
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
                ours, theirs = torchrun.compared(*zip(*times[peer], strict=True))
                samples = torchrun.RANKS * case.batch_size * case.each
                label = f"{name}, {case.recipe.unit} (peer: {'torch, a model of its own' if peer == 'torch' else peer})"
                goal = GOAL if peer == PEER else None
                figures.append(Figure(label, samples / ours, samples / theirs, goal, of="ratio", at_least=True))
    finish("The rate of the recipes' training", figures)


def _times(name: str, case: Case, data: Path, folder: Path) -> dict[str, list[tuple[float, float]]]:
    """Return the seconds of a step of the recipe and of each loop, for all turns that the loop took in all launches."""
    turns = os.environ.get("TRAINING_TURNS", str(TURNS))
    times: dict[str, list[tuple[float, float]]] = {loop: [] for loop in (PEER, *OTHERS)}
    for number in range(LAUNCHES):
        # The copies of the model are made in another order each time.
        others = [*OTHERS[number % len(OTHERS) :], *OTHERS[: number % len(OTHERS)]]
        print(f"{name}, launch {number + 1} of {LAUNCHES} ...", file=sys.stderr)
        outputs = [f"--{output}={folder / output}" for output in ("model", "checkpoints", "history")]
        arguments = [f"--data={data}", f"--per_device_train_batch_size={case.batch_size}", *case.arguments, *outputs]
        loops = ",".join((PEER, *others))
        measured = torchrun.measured("recipe_steps.py", case.recipe.name, turns, loops, *arguments)
        for loop, seconds in measured["times"].items():
            times[loop] += seconds
    return times


if __name__ == "__main__":
    main()
