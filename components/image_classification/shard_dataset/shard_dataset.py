"""Write a data set as WebDataset shards, each rank a part of them."""

from pathlib import Path

import numpy as np
from samples import Samples, find
from torch import distributed
from writing import ShardPlan, write_shard

from allranks import runtime
from allranks.runtime.output_room import full_output_refused
from allranks_steps.images.image_data.shards import FILE, Index, Shard, write_index
from allranks_steps.messages import bad_input

UNFINISHED = ".unfinished"
"""File in the output while shards are written, so that a retried job knows what an earlier attempt has left."""


def shard_dataset(ranks: runtime.Ranks) -> None:
    args = runtime.arguments()
    samples = find(args.data, verify=args.verify)
    prepare_output(args.shards, ranks)
    plans = plan(samples, args.samples_per_shard, args.seed)
    with full_output_refused("output shards", args.shards):
        own = [write_shard(args.shards, each, samples) for each in plans[ranks.rank :: ranks.world_size]]
    gathered: list[list[Shard] | None] = [None] * ranks.world_size
    distributed.all_gather_object(gathered, own)
    if ranks.is_main:
        shards = sorted((shard for part in gathered for shard in part or ()), key=lambda shard: shard.file)
        finish(args.shards, samples, tuple(shards), ranks)
    ranks.barrier()


def prepare_output(folder: Path, ranks: runtime.Ranks) -> None:
    """Mark the output as unfinished. Raise InputError if it contains files that are not of an earlier attempt."""
    full = False
    if ranks.is_main:
        folder.mkdir(parents=True, exist_ok=True)
        full = any(folder.iterdir()) and not (folder / UNFINISHED).exists()
        if not full:
            (folder / UNFINISHED).write_text("Shards are being written.\n", encoding="utf-8")
    if ranks.any_rank(full):
        raise bad_input("output shards", f"{folder} is not empty", "an empty folder", "use a new folder")


def plan(samples: Samples, samples_per_shard: int, seed: int) -> list[ShardPlan]:
    """Return the shards, whatever the number of ranks. Samples are shuffled, so that a shard has all classes."""
    plans = []
    for number, split in enumerate(sorted(samples.counts)):
        order = np.random.default_rng([seed, number]).permutation(samples.counts[split]).tolist()
        for shard, first in enumerate(range(0, len(order), samples_per_shard)):
            file = f"{split}-{shard:06d}.tar"
            plans.append(ShardPlan(file, split, tuple(order[first : first + samples_per_shard]), first))
    return plans


def finish(folder: Path, samples: Samples, shards: tuple[Shard, ...], ranks: runtime.Ranks) -> None:
    """Write the index, which makes the shards complete."""
    images = samples.images
    if images is None:
        index = Index(samples.source, (), shards)
    else:
        known = images.kind == "arrays"
        index = Index(
            samples.source,
            images.classes,
            shards,
            images.channels,
            images.size,
            images.mean if known else (),
            images.std if known else (),
        )
    write_index(folder, index)
    (folder / UNFINISHED).unlink(missing_ok=True)
    count, size = sum(shard.samples for shard in shards), sum(shard.bytes for shard in shards)
    ranks.metrics.log({"samples": count, "shards": len(shards), "mib": size / 2**20}, step=0)
    print(f"{count} samples in {len(shards)} shards, {size / 2**20:.1f} MiB, with {FILE}", flush=True)


if __name__ == "__main__":
    runtime.main(shard_dataset)
