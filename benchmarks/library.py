"""What the library adds to `import azure.ai.ml`: its own import and the first component.

whole processes
    CPU time of a process, minus that of one that imports azure-ai-ml alone, medians of 9. Peer: `load_component` of
    the same file, minus the same.

inside the process
    CPU time of the same statements after the import, medians of 9 new processes.
"""

from __future__ import annotations

import sys
from functools import partial

from bench.figures import Figure, finish
from bench.timing import cpu_seconds, medians, run

from allranks.catalog.shipped import shipped_specs

NAME = "train_image_classifier"
TIMES = 9
GOAL = 60.0

SDK = "import azure.ai.ml"
OURS = f"from allranks.library import {NAME}"
PEER = f"from azure.ai.ml import load_component; load_component({str(shipped_specs()[NAME])!r})"
INSIDE = "import time; start = time.process_time(); {}; print(time.process_time() - start)"


def main() -> None:
    codes = [SDK, f"{SDK}; {OURS}", f"{SDK}; {PEER}"]
    sdk, ours, peer = medians(TIMES, *(partial(cpu_seconds, [sys.executable, "-c", code]) for code in codes))
    inside = medians(TIMES, *(partial(_inside, statement) for statement in (OURS, PEER)))
    figures = {
        "whole processes, CPU ms": (ours - sdk, peer - sdk),
        "inside the process, CPU ms": inside,
    }
    finish(
        "import allranks.library and one component, after import azure.ai.ml",
        [
            Figure(f"{name} (peer: load_component)", ours * 1e3, peer * 1e3, goal=GOAL)
            for name, (ours, peer) in figures.items()
        ],
    )


def _inside(statement: str) -> float:
    return float(run([sys.executable, "-c", f"{SDK}; {INSIDE.format(statement)}"]))


if __name__ == "__main__":
    main()
