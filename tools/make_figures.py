"""Writes the tables of measured figures in docs/reports/performance.md.

python tools/make_figures.py [LOG...]

A log is what a run of a benchmark has printed, and has its name: launch.log of benchmarks/launch.py. Its date is that
of the file. A table whose logs are not given stays as it is. Without logs, the benchmarks of the first table are
run: 3 minutes on a machine that does nothing else.
"""

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PERFORMANCE = ROOT / "docs/reports/performance.md"
BENCHMARKS = ("steps.py", "imports.py")
BEGIN, END = "<!-- table: python tools/make_figures.py -->\n", "<!-- end of the table -->\n"

ROWS: Sequence[tuple[str, str, Mapping[str, str]]] = (
    (
        "a step in a chain, on emulated instances with their own addresses",
        "ms",
        {
            "kfp.local": "chain of 100, rack, ms a step (peer: kfp.local)",
            "Metaflow": "chain of 100, rack, ms a step (peer: Metaflow)",
        },
    ),
    (
        "a step in a chain, on loopback",
        "ms",
        {
            "kfp.local": "chain of 100, loopback, ms a step (peer: kfp.local)",
            "Metaflow": "chain of 100, loopback, ms a step (peer: Metaflow)",
        },
    ),
    (
        "largest process of a run, chain of 100",
        "MiB",
        {
            "kfp.local": "peak memory of the chain, MiB (peer: kfp.local)",
            "Metaflow": "peak memory of the chain, MiB (peer: Metaflow)",
        },
    ),
    ("`--help`", "s", {"torchrun": "allranks --help, s (peer: torchrun --help)"}),
)
"""What was measured, its unit, and the benchmark's figure for each peer."""


BLOCK = re.compile(r"(<!-- table: benchmarks/(\w+)\.py -->\n).*?(<!-- end of the table -->\n)", re.DOTALL)
"""A table of docs/reports/performance.md."""


def table(text: str, measured: date, machine: str) -> str:
    """Return the first table, of what benchmarks have printed."""
    figures = {line["figure"]: line for line in _figures(text)}
    rows = [f"Measured on {measured:%Y-%m-%d}, {machine}:", "", "| | allranks | peers |", "|---|---|---|"]
    for name, unit, names in ROWS:
        peers = ", ".join(f"{peer} {_number(figures[figure]['peer'])} {unit}" for peer, figure in names.items())
        ours = figures[next(iter(names.values()))]["ours"]
        rows.append(f"| {name} | {_number(ours)} {unit} | {peers} |")
    return "\n".join(rows) + "\n"


def performance_table(text: str, measured: date, machine: str) -> str:
    """Return the table of every figure that a benchmark has printed, its peer, and its goal."""
    rows = [f"Measured on {measured:%Y-%m-%d}, {machine}:", "", "| | allranks | peer | ratio | goal |"]
    rows.append("|---|---:|---:|---:|---|")
    for line in _figures(text):
        cells = ["" if line[key] is None else _three_digits(line[key]) for key in ("ours", "peer", "ratio")]
        goal = "" if line["goal"] is None else f"{line['goal']}{'' if line['holds'] else ', missed'}"
        rows.append(f"| {line['figure']} | {' | '.join(cells)} | {goal.replace('<=', '≤').replace('>=', '≥')} |")
    return "\n".join(rows) + "\n"


def with_tables(page: str, logs: Sequence[Path], machine: str) -> str:
    """Return the page about performance with the tables of the benchmarks whose logs are given."""
    by_benchmark = {log.stem: log for log in logs}

    def renewed(block: re.Match[str]) -> str:
        log = by_benchmark.get(block[2])
        if log is None:
            return block[0]
        measured = date.fromtimestamp(log.stat().st_mtime)
        return f"{block[1]}\n{performance_table(log.read_text(encoding='utf-8'), measured, machine)}\n{block[3]}"

    return BLOCK.sub(renewed, page)


def _figures(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith('{"figure"')]


def _number(value: float | None) -> str:
    return "not measured," if value is None else f"{value:.2g}" if value < 100 else f"{value:.0f}"


def _three_digits(value: float) -> str:
    """Return a number with three digits at least, and those before the point: 0.0951, 1.00, 2140."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:#.3g}".rstrip(".")


def _machine() -> str:
    model = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    return f"{os.cpu_count()} cores of {model[1] if model else platform.machine()}, Python {platform.python_version()}"


def main(logs: Sequence[Path]) -> None:
    machine = _machine()
    page = with_tables(PERFORMANCE.read_text(encoding="utf-8"), logs, machine)
    PERFORMANCE.write_text(page, encoding="utf-8")
    of_first = [log for log in logs if f"{log.stem}.py" in BENCHMARKS]
    if logs and len(of_first) < len(BENCHMARKS):
        return
    if logs:
        text = "\n".join(log.read_text(encoding="utf-8") for log in of_first)
        measured = date.fromtimestamp(min(log.stat().st_mtime for log in of_first))
    else:
        commands = [[sys.executable, str(ROOT / "benchmarks" / name)] for name in BENCHMARKS]
        # A missed goal is exit code 1; the figures are printed all the same.
        text = "\n".join(
            subprocess.run(each, stdout=subprocess.PIPE, text=True, check=False).stdout for each in commands
        )
        measured = date.today()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PERFORMANCE.write_text(f"{before}{BEGIN}\n{table(text, measured, machine)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main([Path(log) for log in sys.argv[1:]])
