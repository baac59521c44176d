"""How long a save stops a training of 2 ranks whose state is 1 GB: ours, `torch.save` with fsync, and dcp.async_save.

The model is trained by DistributedDataParallel with AdamW: a third of the state is weights. Ours is
`Checkpoints.save_if_due`. The first peer is what a training script does by itself: rank 0 writes the whole state with
`torch.save`, waits until it is on disk (fsync), and the other rank waits for it. The second is
`torch.distributed.checkpoint.async_save` as it is called without options.

The three take turns in one process group, in an order that changes. Before each save, nothing else is being written.
A stall is that of the slower rank. Every value of a peer is its median, and ours is that plus the median difference to
the peer's of the same turn, so that other load on the machine affects both equally.

For information: the first save; the time until a checkpoint is complete; and a step of a small training while a thread
of ours writes a checkpoint, over a step while nothing is written, and while a process writes as much.

CHECKPOINT_TURNS=5 makes so many turns. A few minutes, 8 GB of memory and 3 GB of disk.
"""

import os
import tempfile
from pathlib import Path

from bench import torchrun
from bench.figures import Figure, finish

TURNS = 5
GOALS = {"torch.save with fsync": 0.25, "dcp.async_save": 0.5}


def main() -> None:
    turns = os.environ.get("CHECKPOINT_TURNS", str(TURNS))
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # on disk; /tmp may be memory
        measured = torchrun.measured("save_stalls.py", folder, turns)
    stalls = measured["stalls"]
    figures = [
        _figure(
            f"stall by a save of {measured['gigabytes']:.2f} GB, s (peer: {peer})", stalls["ours"], stalls[peer], goal
        )
        for peer, goal in GOALS.items()
    ]
    figures.append(Figure("stall by the first save, s", measured["first"]))
    figures += [
        _figure(f"s until the checkpoint is complete (peer: {peer})", measured["complete"]["ours"], values, None)
        for peer, values in measured["complete"].items()
        if peer != "ours"
    ]
    steps = measured["steps"]
    figures += [
        _figure(f"ms a step while our thread writes (peer: while {peer} writes)", steps["writing"], steps[name], None)
        for name, peer in (("idle", "nothing"), ("process", "a process"))
    ]
    finish("The stall of a training by a save", figures)


def _figure(name: str, ours: list[float], peer: list[float], goal: float | None) -> Figure:
    return Figure(name, *torchrun.compared(ours, peer), goal, of="ratio")


if __name__ == "__main__":
    main()
