"""Writes the table of measured figures in the README.

python docs/make_figures.py [LOG...]

Without logs it runs benchmarks/steps.py and benchmarks/imports.py: 3 minutes on a machine that does nothing else.
A log is what such a run has printed; its date is that of the file.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BENCHMARKS = ("steps.py", "imports.py")
BEGIN, END = "<!-- table: python docs/make_figures.py -->\n", "<!-- end of the table -->\n"

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


def table(text: str, measured: date, machine: str) -> str:
    """Return the table of what benchmarks have printed."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith('{"figure"')]
    figures = {line["figure"]: line for line in lines}
    rows = [f"Measured on {measured:%Y-%m-%d}, {machine}:", "", "| | allranks | peers |", "|---|---|---|"]
    for name, unit, names in ROWS:
        peers = ", ".join(f"{peer} {_number(figures[figure]['peer'])} {unit}" for peer, figure in names.items())
        ours = figures[next(iter(names.values()))]["ours"]
        rows.append(f"| {name} | {_number(ours)} {unit} | {peers} |")
    return "\n".join(rows) + "\n"


def _number(value: float | None) -> str:
    return "not measured," if value is None else f"{value:.2g}" if value < 100 else f"{value:.0f}"


def _machine() -> str:
    model = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    return f"{os.cpu_count()} cores of {model[1] if model else platform.machine()}, Python {platform.python_version()}"


def main(logs: Sequence[str]) -> None:
    if logs:
        text = "\n".join(Path(log).read_text(encoding="utf-8") for log in logs)
        measured = date.fromtimestamp(min(Path(log).stat().st_mtime for log in logs))
    else:
        commands = [[sys.executable, str(ROOT / "benchmarks" / name)] for name in BENCHMARKS]
        # A missed goal is exit code 1; the figures are printed all the same.
        text = "\n".join(
            subprocess.run(each, stdout=subprocess.PIPE, text=True, check=False).stdout for each in commands
        )
        measured = date.today()
    before, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{BEGIN}\n{table(text, measured, _machine())}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
