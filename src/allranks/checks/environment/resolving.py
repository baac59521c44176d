"""Check with pip that the pinned packages are compatible."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from allranks.checks.environment.pins import lock_command
from allranks.contract.requirements import normal
from allranks.environments.find import EnvironmentFolder
from allranks.errors import Problem
from allranks.plan.requirement_files import files, pins

SECONDS = 900


def problems(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
    """Let pip resolve the variant without GPUs for this Python. Only package metadata is downloaded."""
    chosen = [path for path in files(environment.folder) if not path.name.endswith("-cuda.txt")]
    if not chosen:
        return
    with tempfile.TemporaryDirectory(prefix="allranks-") as folder:
        requirements = Path(folder, "requirements.txt")
        # Without checksums: the resolver ignores them, but would require one for every package.
        lines = [
            line
            for path in chosen
            for line in path.read_text().splitlines()
            if line.startswith(("--extra-index-url", "--find-links", "--no-index"))
        ]
        requirements.write_text("\n".join([*lines, *(pin.text for path in chosen for pin in pins(path))]) + "\n")
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--dry-run",
            "--ignore-installed",
            "-r",
            str(requirements),
        ]
        try:
            completed = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            found = f"pip has not answered in {SECONDS} s"
            yield Problem(f"{chosen[-1]}", found, "an answer", "try again, or leave it out: --no-resolve")
            return
    if completed.returncode != 0:
        complaint = _complaint(completed.stdout, completed.stderr)
        name = _first_package(complaint)
        pin = next((pin for path in chosen for pin in pins(path) if pin.name == name), None)
        where = f"{pin.path}:{pin.line}" if pin else f"{chosen[-1]}"
        fix = f"run: {lock_command(environment.folder)}"
        yield Problem(where, "; ".join(complaint[:6])[:500], "packages that go together", fix)


def _complaint(output: str, errors: str) -> list[str]:
    """Return the conflicting requirements if pip lists them, else its errors."""
    _, _, cause = output.partition("The conflict is caused by:")
    lines = (cause.partition("\n\n")[0] if cause else errors).splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("WARNING")]


def _first_package(complaint: list[str]) -> str:
    """Return the first package that pip's complaint names; "" if it names none."""
    for line in complaint:
        for word in line.replace("ERROR:", "").split():
            if "==" in word:
                return normal(word.split("==")[0].strip("(),"))
    return ""
