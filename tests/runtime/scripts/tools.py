"""What the ranks of a training exchange; each writes it to RANK.json in the folder that is named."""

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


if __name__ == "__main__":
    runtime.main(train, timeout_seconds=60)
