"""Helpers of the probes: findings and their text, the output of programs, the result of Python code, versions.

No function raises.
"""

import json
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    ok: True or False; None if it could not be checked, with the reason in found
    """

    what: str
    expected: str
    found: str
    ok: bool | None


def is_right(findings: list[Finding]) -> bool:
    return not any(finding.ok is False for finding in findings)


def to_records(findings: list[Finding]) -> list[dict[str, object]]:
    return [asdict(finding) for finding in findings]


def as_text(findings: list[Finding]) -> str:
    """Return a line for each finding, with the expected value if the check failed."""
    lines = []
    for finding in findings:
        mark = {True: "ok  ", False: "FAIL", None: "-   "}[finding.ok]
        expectation = f", expected {finding.expected}" if finding.ok is False else ""
        lines.append(f"{mark}  {finding.what}: {finding.found}{expectation}")
    return "\n".join(lines)


SECONDS = 120
"""Time limit of one command; importing TensorFlow on a busy machine takes longest."""


def output(*command: str, env: dict[str, str] | None = None, seconds: float = SECONDS) -> tuple[int, str]:
    """Run a command; return its exit code, and stdout and stderr together.

    127 and the reason if it cannot be started, 124 if it runs longer than `seconds`.
    """
    try:
        completed = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, timeout=seconds, check=False
        )
    except OSError as error:
        return 127, f"{command[0]}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return 124, f"{command[0]}: no end after {seconds:.0f} s"
    return completed.returncode, completed.stdout


def run_python(code: str) -> Any:
    """Run code in a Python process of its own; return its variable `answer`, or the error as text if it fails.

    A library that cannot be imported may abort its process; this one continues.
    """
    program = f"import json, sys\n{code}\nsys.stderr.flush(); print(); print('ANSWER', json.dumps(answer))"
    exit_code, text = output(sys.executable, "-c", program)
    line = next((line for line in reversed(text.splitlines()) if line.startswith("ANSWER ")), None)
    if line is not None:
        return json.loads(line.removeprefix("ANSWER "))
    return last_line(text) or f"exit code {exit_code}"


def last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def first_version(text: str) -> str:
    """Return the first version number in a text; "" if there is none."""
    match = re.search(r"\d+(\.\d+)+", text)
    return match[0] if match else ""


def satisfies(version: str, wanted: str) -> bool:
    """Return whether a version equals the wanted one, or is within bounds such as >=3.11,<3.14.

    A local version label ("+cu126") is compared only if the wanted version has one.
    """
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
