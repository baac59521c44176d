"""What a rank writes down once its first all-reduce is over: the time, and its memory while all ranks are alive."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path


def reached(rank: int, barrier: Callable[[], object]) -> None:
    """Write the file FOLDER/RANK: seconds since the epoch, and the rank's share of memory (PSS) in bytes.

    barrier: waits for all ranks
    """
    now = time.time()
    barrier()
    rollup = Path("/proc/self/smaps_rollup").read_text()
    shared = next(int(line.split()[1]) << 10 for line in rollup.splitlines() if line.startswith("Pss:"))
    barrier()  # a rank that exits leaves its share to the others
    file = Path(sys.argv[1]) / str(rank)
    unfinished = file.with_suffix(".part")
    unfinished.write_text(json.dumps([now, shared]))
    os.rename(unfinished, file)
