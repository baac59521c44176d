"""Small questions to the machine: a program's output, a module's answer, a version. Nothing here raises."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

SECONDS = 120
"""How long one question may take; importing TensorFlow on a busy machine is the longest."""


def output(*command: str, env: dict[str, str] | None = None, seconds: float = SECONDS) -> tuple[int, str]:
    """Return the exit code and what the command printed on both streams; 127 and the reason where it cannot be
    started."""
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, timeout=seconds, check=False
        )
    except OSError as error:
        return 127, f"{command[0]}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return 124, f"{command[0]}: no end after {seconds:.0f} s"
    return done.returncode, done.stdout


def of_python(code: str) -> Any:
    """Return what code in a Python of its own leaves in `answer`; a text that says what went wrong where it fails.

    A library that cannot be imported may end its process: that of the questions goes on.
    """
    program = f"import json, sys\n{code}\nsys.stderr.flush(); print(); print('ANSWER', json.dumps(answer))"
    code_, text = output(sys.executable, "-c", program)
    line = next((line for line in reversed(text.splitlines()) if line.startswith("ANSWER ")), None)
    if line is not None:
        return json.loads(line.removeprefix("ANSWER "))
    return last_line(text) or f"exit code {code_}"


def place() -> str:
    """Return the folder from which this package can be imported, wherever its copy lies."""
    package = __package__ or ""
    return str(Path(__file__).resolve().parents[package.count(".") + 1])


def last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def first_version(text: str) -> str:
    """Return the first thing in a text that looks like a version; "" where there is none."""
    match = re.search(r"\d+(\.\d+)+", text)
    return match[0] if match else ""


def satisfies(version: str, wanted: str) -> bool:
    """Return whether a version is the one that is wanted, or within bounds such as >=3.11,<3.14. A build's own name
    behind "+" counts only where the wanted one has it."""
    if "+" not in wanted:
        version = version.split("+")[0]
    return all(_holds(version, bound.strip()) for bound in wanted.split(","))


def _holds(version: str, bound: str) -> bool:
    match = re.match(r"(>=|<|==)?\s*(.+)", bound)
    if match is None:
        return False
    operator, other = match[1] or "==", match[2]
    if operator == "==":
        return version == other
    return _numbers(version) >= _numbers(other) if operator == ">=" else _numbers(version) < _numbers(other)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))
