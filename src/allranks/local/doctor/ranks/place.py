"""The line that every script prints for each rank."""

import json
import os


def tell(*, rank: int, world_size: int, local_rank: int, total: float) -> None:
    """Print a rank's place. total: the sum of `rank + 1` over all ranks, computed by the stack's own all-reduce."""
    place = {"rank": rank, "world_size": world_size, "local_rank": local_rank, "total": total}
    # One write, because ranks that the stack's own launcher starts share a log.
    os.write(1, f"place {json.dumps(place)}\n".encode())
