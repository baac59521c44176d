"""Load two epochs of shards, ten samples each, with workers, and print the samples of each step.

load_batches.py WORKERS [EVICTED_RANK]    that rank and its workers get SIGTERM in the fourth step
"""

import multiprocessing
import subprocess
import sys

import torch

from allranks import runtime

SHARDS = 6
IN_A_SHARD = 10


def read(shard: int, start: int):
    return (IN_A_SHARD * shard + number for number in range(start, IN_A_SHARD))


def train(ranks: runtime.Ranks) -> None:
    workers, *evicted = map(int, sys.argv[1:])
    dataset = runtime.ShardedDataset([IN_A_SHARD] * SHARDS, read, transform=torch.tensor, window=4)
    loader = runtime.DataLoader(
        dataset, runtime.ShardSampler(dataset, ranks, batch_size=7), num_workers=workers, prefetch_factor=1
    )
    checkpoints = runtime.Checkpoints("../checkpoints", ranks, {"loader": loader})
    step = checkpoints.load()
    for _ in range(loader.epoch, 2):
        for samples in loader:
            step += 1
            print("used", *(samples.tolist() if loader.weight else []), flush=True)
            ranks.barrier()
            if ranks.rank in evicted and step == 4:
                evict()
            checkpoints.save_if_due(step)
    print("steps", step)


def evict() -> None:
    """Send SIGTERM to this process and its workers from another process, as a platform does."""
    own = [multiprocessing.current_process(), *multiprocessing.active_children()]
    subprocess.run(["sh", "-c", f"kill -TERM {' '.join(str(process.pid) for process in own)}"], check=True)


if __name__ == "__main__":
    runtime.main(train, timeout_seconds=60)
