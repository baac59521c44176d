"""Writes docs/sizes.md from the table of sizes.

python docs/make_sizes.py
"""

from __future__ import annotations

from pathlib import Path

from allranks.hardware.cuda import names, releases_of
from allranks.hardware.sizes import Size, sizes

PAGE = Path(__file__).resolve().parent / "sizes.md"

HEAD = """# Azure sizes with GPUs

Made by `python docs/make_sizes.py` from `src/allranks/hardware/sizes.csv`. A dash: no source says it, or there is none.
Everything was read in the sources below. Nothing was measured on these sizes.

- CUDA: the variants of the environments that run on its GPUs (`allranks environments sync --variant NAME`). V100 and T4
  have no bfloat16: trainings with `precision=auto`, the default, compute in float16 on them.
- InfiniBand: ports x Gb/s of each. `RDMA only`: the size has RDMA in its name and no SR-IOV, so a job on it has none.
- All-reduce: the bus bandwidth in GB/s that Azure's health check expects of all GPUs of one instance, at least.

What follows from a size, the processes, the variables of NCCL and UCX and why, and its traps:

```console
$ allranks doctor ND96asr_v4
$ allranks doctor --sizes --gpu A100 --infiniband
```

In a pipeline, `allranks.layout(step, size="ND96asr_v4")` sets what a step needs for a size
([components.md](components.md#lay-out)).

"""

COLUMNS = ("size", "GPUs", "CUDA", "NVLink", "InfiniBand", "CPU", "GiB", "all-reduce", "retired", "sources")


def page() -> str:
    """The whole page."""
    numbers: dict[str, int] = {}
    rows = [_row(size, numbers) for size in sizes()]
    lines = [_line(COLUMNS), "|" + "---|" * len(COLUMNS), *map(_line, rows), "", "Sources:", ""]
    lines += [f"{number}. `{source}`" for source, number in numbers.items()]
    return HEAD + "\n".join(lines) + "\n"


def _row(size: Size, numbers: dict[str, int]) -> tuple[str, ...]:
    for source in size.sources:
        numbers.setdefault(source, len(numbers) + 1)
    return (
        f"`{size.name}`",
        f"{size.gpus} x {size.gpu} {size.gpu_memory_gb} GB",
        names(releases_of(size)) or "-",
        {True: "yes", False: "no", None: "-"}[size.nvlink],
        _infiniband(size),
        f"{size.vcpus} {size.architecture}",
        str(size.host_memory_gib or "-"),
        f"{size.all_reduce_gb_s:g}" if size.all_reduce_gb_s else "-",
        str(size.retired or "-"),
        ", ".join(str(numbers[source]) for source in size.sources),
    )


def _infiniband(size: Size) -> str:
    if not size.infiniband:
        return "RDMA only" if size.rdma else "-"
    return f"{size.infiniband_ports} x {size.infiniband_gbit_s}" if size.infiniband_ports else "yes"


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
