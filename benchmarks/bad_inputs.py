"""What a wrong input costs: every row of the tables in tests/bad_inputs as the command that a user types.

seconds to the message
    Wall time of the slowest row, from the start of the process to its end.

memory
    Peak resident memory of the largest row, with everything that it started. A process that only imports azure-ai-ml is
    the peer.

Each row runs alone. It is stopped after 30 seconds. The names of the worst rows are printed to standard error.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.figures import Figure, finish

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from allranks_command import environment, words
from bad_inputs.commands import OTHER_USER
from bad_inputs.row import Row, make_workspace, prepare
from bad_inputs.tables import ROWS

PATIENCE = 30.0
MOST_SECONDS = 3.0
MOST_MB = 500.0

MEASURE = """
import resource, subprocess, sys, time
begin = time.monotonic()
code = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL).returncode
print(code, time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""
"""Runs a command and prints its exit code, its seconds and its megabytes."""


def main() -> None:
    seconds: dict[str, float] = {}
    megabytes: dict[str, float] = {}
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="bad-") as place:
        os.chmod(place, 0o755)
        make_workspace(Path(place, "workspace"))
        for number, (name, row) in enumerate(ROWS.items()):
            if row.other and os.geteuid() != 0:
                continue
            folder = Path(place, str(number))
            prepare(row, folder, Path(place, "workspace"))
            code, seconds[name], megabytes[name] = _measured(row, folder)
            if code != row.code:
                wrong.append(name)
    for name in sorted(seconds, key=lambda each: -seconds[each])[:5]:
        print(f"{seconds[name]:6.2f} s  {megabytes[name]:6.0f} MB  {name}", file=sys.stderr)
    peer_seconds, peer_megabytes = _peer()
    finish(
        f"What {len(seconds)} wrong inputs cost",
        [
            Figure("slowest message, s (peer: import azure.ai.ml)", max(seconds.values()), peer_seconds, MOST_SECONDS),
            Figure("most memory, MB (peer: import azure.ai.ml)", max(megabytes.values()), peer_megabytes, MOST_MB),
            Figure("rows with another exit code than in the table", len(wrong), goal=0),
        ],
    )


def _measured(row: Row, folder: Path) -> tuple[int, float, float]:
    """Return the exit code, the seconds and the megabytes of a row's command."""
    streams = "".join(f" {number}>&-" for number in row.closed)
    command = ["sh", "-c", f'exec "$@"{streams}', "sh", *words(*row.arguments)]
    user = {"user": OTHER_USER, "group": OTHER_USER, "extra_groups": []} if row.other else {}
    try:
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, *command],
            cwd=folder,
            env=environment(TMPDIR="/tmp", **row.variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=PATIENCE,
            check=False,
            **user,  # type: ignore[call-overload]
        )
    except subprocess.TimeoutExpired:
        return 137, PATIENCE, 0.0
    code, seconds, megabytes = done.stdout.splitlines()[-1].split()
    return int(code), float(seconds), float(megabytes)


def _peer() -> tuple[float, float]:
    """Return the seconds and the megabytes of a process that imports the SDK."""
    command = [sys.executable, "-c", MEASURE, sys.executable, "-c", "import azure.ai.ml"]
    _, seconds, megabytes = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return float(seconds), float(megabytes)


if __name__ == "__main__":
    main()
