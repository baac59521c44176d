"""Check that Open MPI's mpirun starts real ranks, and that they can all-reduce.

Run as a program, it is one of the ranks: python ranks.py KIND FOLDER.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from probe_commands import Finding, last_line, output

SECONDS = 180


def ranks(wanted: dict[str, Any], _facts: dict[str, str]) -> list[Finding]:
    """Start `count` ranks under mpirun, once for each library of `over` that they all-reduce by (mpi4py, torch)."""
    return [_run(int(wanted["count"]), kind) for kind in (wanted.get("over") or ["none"])]


def _run(count: int, kind: str) -> Finding:
    what = f"{count} ranks under mpirun" + ("" if kind == "none" else f", all-reduce by {kind}")
    with tempfile.TemporaryDirectory(prefix="ranks-") as folder:
        command = ["mpirun", "-np", str(count), "--oversubscribe", "--bind-to", "none", "--host", f"localhost:{count}"]
        env = {**os.environ, "OMPI_MCA_mpi_yield_when_idle": "1", "GLOO_SOCKET_IFNAME": "lo"}
        # Processes in a container may not read each other's memory; Open MPI would warn on every message.
        env["OMPI_MCA_btl_vader_single_copy_mechanism"] = "none"
        if os.geteuid() == 0:
            env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        program = [sys.executable, __file__, kind, folder]
        code, text = output(*command, *program, env=env, seconds=SECONDS)
        reports = sorted(path.read_text(encoding="utf-8") for path in Path(folder).glob("rank-*"))
    total = "-" if kind == "none" else str(sum(range(1, count + 1)))
    expected = [f"rank {rank} of {count}: {total}" for rank in range(count)]
    if code == 0 and reports == expected:
        return Finding(what, "right", "right", True)
    return Finding(what, "; ".join(expected), f"exit code {code}: {'; '.join(reports) or last_line(text)}", False)


def main(kind: str, folder: str) -> None:
    """Sum rank + 1 over all ranks, and write the sum to a file: printed lines of several ranks may interleave."""
    rank, size = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
    total = {"mpi4py": _by_mpi4py, "torch": _by_torch, "none": lambda *_: "-"}[kind](rank, size, folder)
    Path(folder, f"rank-{rank}").write_text(f"rank {rank} of {size}: {total}", encoding="utf-8")


def _by_mpi4py(rank: int, _size: int, _folder: str) -> str:
    from mpi4py import MPI

    return str(MPI.COMM_WORLD.allreduce(rank + 1))


def _by_torch(rank: int, size: int, folder: str) -> str:
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    total = torch.tensor([rank + 1])
    dist.all_reduce(total)
    dist.destroy_process_group()
    return str(int(total.item()))


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    if sys.argv[1] == "torch":
        os._exit(0)  # gloo's threads race with the interpreter's exit, and may abort a rank that has finished
