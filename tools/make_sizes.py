"""Writes docs/reference/sizes.md from the table of sizes.

python tools/make_sizes.py
"""

from pathlib import Path

from allranks.hardware.sizes import Size, releases_of, sizes

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "sizes.md"

HEAD = """# Azure sizes with GPUs

Made by `make docs`. [Choose an Azure size](../how-to/choose-a-size.md) explains the columns. A dash: no source says it,
or there is none.

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
        ", ".join(release.name for release in releases_of(size)) or "-",
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
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
