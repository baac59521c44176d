"""A rank of benchmarks/checkpoint.py: saves the state of one training in several ways, in turn.

    torchrun ... save_stalls.py FOLDER TURNS

Rank 0 prints a line of JSON: the stalls and the seconds until a checkpoint is complete by way, and milliseconds a step.
"""

import json
import mmap
import os
import random
import shutil
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch import nn

from allranks import runtime
from allranks.runtime.checkpoints.manifest import BLOCK_BYTES

LAYERS, WIDTH = 5, 4096
"""Weights of 336 MB, and a gigabyte with the two tensors of AdamW for each."""
WARM_UP_TURNS = 1
STEPS = 30
PAUSE_SECONDS = 5.0
BYTES = 1 << 29
"""Half of the state: what one rank writes."""

Save = Callable[[int], Callable[[], None]]
"""Begins to save as number N, and returns what waits until the checkpoint is complete."""


def train(ranks: runtime.Ranks) -> None:
    folder, turns = Path(sys.argv[1]), int(sys.argv[2])
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)))
    training = ranks.strategy.prepare(model, torch.optim.AdamW(model.parameters()))
    training.backward(training.model(torch.randn(4, WIDTH)).square().mean())
    training.step()
    saves = ways(ranks, training, folder)
    first, _ = timed(ranks, saves["ours"], 0, folder)

    names = list(saves)
    shuffle = random.Random(0).shuffle  # the same order on every rank
    stalls: dict[str, list[float]] = {name: [] for name in names}
    complete: dict[str, list[float]] = {name: [] for name in names}
    number = 0
    for turn in range(WARM_UP_TURNS + turns):
        shuffle(names)
        for name in names:
            number += 1
            stall, total = timed(ranks, saves[name], number, folder)
            if turn >= WARM_UP_TURNS:
                stalls[name].append(stall)
                complete[name].append(total)
    measured = {
        "gigabytes": gigabytes(training),
        "first": first,
        "stalls": stalls,
        "complete": complete,
        "steps": steps(ranks, saves["ours"], number, turns, folder),
    }
    if ranks.is_main:
        print(json.dumps(measured), flush=True)
    ranks.barrier()


def ways(ranks: runtime.Ranks, training: runtime.Training, folder: Path) -> dict[str, Save]:
    """Return the ways to save, by name."""
    checkpoints = runtime.Checkpoints(folder / "ours", ranks, {"training": training}, every_steps=2, keep=1)
    checkpoints.save_if_due(1)  # reserves memory, and a training takes a while to its first save
    time.sleep(PAUSE_SECONDS)
    model, optimizer = training.model.module, training.optimizer
    assert isinstance(model, nn.Module)

    def ours(number: int) -> Callable[[], None]:
        step = 2 * number + 2
        checkpoints.save_if_due(step)
        return lambda: checkpoints.save(step)

    def by_torch(number: int) -> Callable[[], None]:
        if ranks.is_main:
            with (folder / f"{number}.pt").open("wb") as file:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
                file.flush()
                os.fsync(file.fileno())
        ranks.barrier()
        return lambda: None

    def by_dcp(number: int) -> Callable[[], None]:
        state: dict[str, Any] = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        future: Any = dcp.async_save(state, checkpoint_id=str(folder / f"{number}.dcp"))
        return lambda: future.result() and None

    return {"ours": ours, "torch.save with fsync": by_torch, "dcp.async_save": by_dcp}


def timed(ranks: runtime.Ranks, save: Save, number: int, folder: Path) -> tuple[float, float]:
    """Save once. Return the stall, and the time until the checkpoint is complete, of the slower rank in seconds."""
    ranks.barrier()
    started = time.perf_counter()
    wait = save(number)
    stall = time.perf_counter() - started
    wait()
    total = time.perf_counter() - started
    slower = torch.tensor([stall, total])
    torch.distributed.all_reduce(slower, torch.distributed.ReduceOp.MAX)
    if ranks.is_main:
        for path in folder.iterdir():
            if path.suffix == ".dcp":
                shutil.rmtree(path)
            elif path.suffix == ".pt":
                path.unlink()
    if ranks.is_main:
        os.sync()  # nothing of this save is left to write during the next one
    ranks.barrier()
    return float(slower[0]), float(slower[1])


def steps(ranks: runtime.Ranks, save: Save, number: int, turns: int, folder: Path) -> dict[str, list[float]]:
    """Return the milliseconds of a step of a small training: while a checkpoint is written, while a process of its own
    writes as much in the same way, and while nothing is written."""
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))
    training = ranks.strategy.prepare(model, torch.optim.AdamW(model.parameters()))
    samples = torch.randn(256, 512)
    memory = mmap.mmap(-1, BYTES)
    names = ["writing", "process", "idle"]
    found: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(WARM_UP_TURNS + turns):
        random.Random(turn).shuffle(names)
        for name in names:
            number += 1
            if name == "writing":
                wait = save(number)
            elif name == "process":
                wait = written_by_process(memory, folder / f"{ranks.rank}.pt")
            else:
                wait = nothing
            started = time.perf_counter()
            for _ in range(STEPS):
                training.backward(training.model(samples).square().mean())
                training.step()
            if turn >= WARM_UP_TURNS:
                found[name].append((time.perf_counter() - started) / STEPS * 1000)
            wait()
            if ranks.is_main:
                os.sync()
            ranks.barrier()
    return found


def written_by_process(memory: mmap.mmap, path: Path) -> Callable[[], None]:
    """Write memory to a file in a process of its own, with checksums and fsync. Return what waits for it."""
    child = os.fork()
    if child:
        return lambda: os.waitpid(child, 0) and None
    try:
        with path.open("wb", buffering=0) as file:
            for start in range(0, BYTES, BLOCK_BYTES):
                file.write(memoryview(memory)[start : start + BLOCK_BYTES])
                zlib.crc32(memoryview(memory)[start : start + BLOCK_BYTES])
            os.fsync(file.fileno())
    finally:
        os._exit(0)


def nothing() -> None:
    """Wait for nothing."""


def gigabytes(training: runtime.Training) -> float:
    """Return the size of the weights and of the optimizer's state in 10^9 bytes."""
    tensors = list(training.model.parameters())
    tensors += [value for state in training.optimizer.state.values() for value in state.values()]
    return sum(tensor.nbytes for tensor in tensors) / 1e9


if __name__ == "__main__":
    runtime.main(train)
