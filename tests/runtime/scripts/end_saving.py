"""End while a checkpoint is being written: end_saving.py FOLDER HOW

return              the training is complete
exit                the training ends itself with sys.exit(0), while its part of the second checkpoint is slow
raise               rank 1 fails, while its part of the second checkpoint is slow
disk in between     rank 1 cannot write its part, and the training goes on with collectives
elsewhere           rank 1 writes to another folder
"""

import itertools
import sys
import time
from pathlib import Path
from typing import Any

import torch

from allranks import runtime
from allranks.runtime.checkpoints import writing
from allranks.runtime.checkpoints.writing import Writer


class Numbers:
    def __init__(self) -> None:
        self.values = torch.zeros(1 << 20)

    def state_dict(self) -> dict[str, torch.Tensor]:
        return {"values": self.values}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        self.values.copy_(state["values"])


def slow(*_: object) -> Any:
    time.sleep(60)
    raise AssertionError("the process should have ended before")


def no_space(*_: object) -> Any:
    raise OSError(28, "No space left on device")


def rather_slow(*arguments: Any) -> Any:
    time.sleep(0.5)
    return write(*arguments)


write = Writer.write_data
FAULTS = {"raise": slow, "disk in between": no_space}


def train(ranks: runtime.Ranks) -> None:
    folder, how = Path(sys.argv[1]), sys.argv[2]
    numbers = Numbers()
    checkpoints = runtime.Checkpoints(folder, ranks, {"numbers": numbers}, every_steps=1)
    print("loaded", checkpoints.load(), float(numbers.values.mean()), flush=True)
    numbers.values.fill_(1)
    checkpoints.save(1)
    if how == "elsewhere":
        writing.VISIBLE_SECONDS = 0.5
        checkpoints._folder = folder / str(ranks.rank)
    if ranks.rank == 1 and how in FAULTS:
        Writer.write_data = FAULTS[how]  # type: ignore[method-assign]
        writing.ABANDON_SECONDS = 0.2
    if how == "exit":
        Writer.write_data = rather_slow  # type: ignore[method-assign]
    numbers.values.fill_(2)
    checkpoints.save_if_due(2)
    if how == "exit":
        sys.exit(0)
    if how == "disk in between":
        checkpoints._every_steps = None
        for step in itertools.count(3):
            ranks.barrier()
            checkpoints.save_if_due(step)
    if how == "raise" and ranks.rank == 1:
        raise RuntimeError("this rank fails")
    if how == "raise":
        ranks.barrier()  # until the other one has failed


if __name__ == "__main__":
    runtime.main(train, timeout_seconds=60)
