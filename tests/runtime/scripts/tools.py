"""What the ranks of a training decide and exchange; each writes it to RANK.json in the folder that is named."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import torch

from allranks import runtime
from allranks.errors import InputError


def train(ranks: runtime.Ranks) -> None:
    folder = Path(sys.argv[1])
    found = {
        "gather": gathered(ranks),
        "reduce": reduced(ranks),
        "broadcast": ranks.broadcast({"rank": ranks.rank, "path": Path("data")})["rank"],
        "stopping": stopped(ranks),
        "batch_size": batch_sizes(ranks),
        "profile": profiled(ranks, folder / "profile"),
    }
    (folder / f"{ranks.rank}.json").write_text(json.dumps(found))


def gathered(ranks: runtime.Ranks) -> dict[str, Any]:
    """Rank r has r rows of two."""
    rows = torch.full((ranks.rank, 2), float(ranks.rank), requires_grad=True)
    result = {
        str(dtype): ranks.gather(rows.to(dtype)).tolist()
        for dtype in (torch.float64, torch.bfloat16, torch.int64, torch.bool)
    }
    result["scalars"] = ranks.gather(torch.tensor(ranks.rank)).tolist()
    result["nothing"] = list(ranks.gather(torch.empty(0, 3)).shape)
    result["gradient"] = ranks.gather(rows).requires_grad
    for name, tensor in (("shape", torch.zeros(1, 2 + ranks.rank)), ("dtype", torch.zeros(1).to(_TYPES[ranks.rank]))):
        try:
            ranks.gather(tensor)
        except InputError as error:
            result[name] = str(error)
    return result


_TYPES = (torch.float32, torch.float32, torch.int32)


def reduced(ranks: runtime.Ranks) -> dict[str, Any]:
    mine = ranks.rank + 1
    values: dict[str, Any] = {
        "number": 0.5 * mine,
        "count": mine,
        "float32": torch.tensor([mine, -mine], dtype=torch.float32),
        "bfloat16": torch.tensor([256.0, mine], dtype=torch.bfloat16),
        "uint8": torch.tensor([200, mine], dtype=torch.uint8),
        "bool": torch.tensor([True, mine == 1]),
    }
    results = {}
    for name, value in values.items():
        for operation in ("sum", "mean", "max", "min"):
            result = ranks.reduce(value, operation)
            if isinstance(result, torch.Tensor):
                result = [str(result.dtype).removeprefix("torch."), *result.tolist()]
            results[f"{name} {operation}"] = result
    assert values["float32"].tolist() == [mine, -mine], "what was given has changed"
    try:
        ranks.reduce(1, "median")
    except InputError as error:
        results["unknown"] = str(error)
    return results


def stopped(ranks: runtime.Ranks) -> list[Any]:
    """The metric differs between the ranks, whose mean counts: 3, 2, 2, 1.95."""
    stopping = runtime.EarlyStopping(ranks, patience=2, min_delta=0.1)
    return [stopping.update(mean + ranks.rank - 1) for mean in (3, 2, 2, 1.95)]


def batch_sizes(ranks: runtime.Ranks) -> dict[str, Any]:
    """The memory of rank 1 is smallest."""
    limits = (100, 37, 64)
    tried = []

    def try_step(size: int) -> None:
        tried.append(size)
        torch.rand(1)
        if size > limits[ranks.rank]:
            raise torch.OutOfMemoryError("CUDA out of memory")

    before = torch.get_rng_state()
    found = {
        "any": runtime.find_batch_size(try_step, ranks, largest=100),
        "tried": tried[:],
        "multiple": runtime.find_batch_size(try_step, ranks, largest=100, multiple_of=8),
        "bounded": runtime.find_batch_size(try_step, ranks, largest=20, smallest=3),
        "same random state": torch.equal(before, torch.get_rng_state()),
    }
    try:
        runtime.find_batch_size(try_step, ranks, smallest=38, largest=64)
    except InputError as error:
        found["none"] = str(error)
    try:
        runtime.find_batch_size(lambda size: torch.zeros(2) + torch.zeros(3), ranks, largest=8)
    except RuntimeError as error:
        found["other"] = str(error)
    return found


def profiled(ranks: runtime.Ranks, folder: Path) -> Any:
    with runtime.Profiler(ranks, wait=1, warm_up=1, active=2, on_ranks=[1], folder=folder) as profiler:
        for _ in range(6):
            torch.ones(8, 8) @ torch.ones(8, 8)
            profiler.step()
    ranks.barrier()
    if ranks.is_main:
        return sorted(path.name for path in folder.iterdir())
    if ranks.rank == 1:
        with gzip.open(folder / "rank_1.pt.trace.json.gz") as file:
            names = [event.get("name") for event in json.load(file)["traceEvents"]]
        return [names.count("aten::mm"), "aten::mm" in (folder / "rank_1.txt").read_text()]
    return None


if __name__ == "__main__":
    runtime.main(train, timeout_seconds=60)
