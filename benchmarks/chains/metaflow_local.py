"""Run steps of `true` with Metaflow: python metaflow_local.py SHAPE COUNT FOLDER. Print the seconds of the run.

A chain is a flow of COUNT linear steps; a fan is a foreach over COUNT items. Both have an additional first and last
step that do nothing.
"""

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

HEAD = """
import subprocess
from metaflow import FlowSpec, step

class Steps(FlowSpec):
"""

STEP = """
    @step
    def {name}(self{more}):
        {body}
        {then}
"""

TRUE = 'subprocess.run(["true"], check=True)'


def main(shape: str, count: int, folder: Path) -> None:
    flow = folder / "flow.py"
    folder.mkdir(parents=True, exist_ok=True)
    flow.write_text(_chain(count) if shape == "chain" else _fan(count), encoding="utf-8")
    environment = os.environ | {"METAFLOW_DATASTORE_SYSROOT_LOCAL": str(folder), "METAFLOW_USER": "benchmark"}
    command = [sys.executable, str(flow), "--no-pylint", "--quiet", "run", "--max-workers", str(os.cpu_count())]
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=sys.stderr)
    print(time.perf_counter() - started)


def _chain(count: int) -> str:
    names = [f"step_{number}" for number in range(count)] + ["end"]
    steps = [_step("start", "pass", f"self.next(self.{names[0]})")]
    steps += [_step(name, TRUE, f"self.next(self.{following})") for name, following in itertools.pairwise(names)]
    return _flow(*steps, _step("end", "pass", ""))


def _fan(count: int) -> str:
    return _flow(
        _step("start", f"self.numbers = list(range({count}))", 'self.next(self.work, foreach="numbers")'),
        _step("work", TRUE, "self.next(self.join)"),
        _step("join", "pass", "self.next(self.end)", more=", inputs"),
        _step("end", "pass", ""),
    )


def _step(name: str, body: str, then: str, more: str = "") -> str:
    return STEP.format(name=name, body=body, then=then, more=more)


def _flow(*steps: str) -> str:
    return f'{HEAD}{"".join(steps)}\nif __name__ == "__main__":\n    Steps()\n'


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
