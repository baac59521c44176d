"""Whether the pinned packages go together, by what pip makes of them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from allranks.environments.check.requirements import files, normal, pins
from allranks.environments.find import EnvironmentFolder
from allranks.errors import Problem

SECONDS = 900


def problems(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
    """Ask pip for the variant without GPUs and this Python. Downloads no more than what describes the packages."""
    chosen = [path for path in files(environment.folder) if path.name != "device-cuda.txt"]
    if not chosen:
        return
    with tempfile.TemporaryDirectory(prefix="allranks-") as folder:
        wanted = Path(folder, "requirements.txt")
        # Without checksums: the resolver does not look at them, and would ask for one of every package.
        lines = [
            line
            for path in chosen
            for line in path.read_text().splitlines()
            if line.startswith(("--extra-index-url", "--find-links", "--no-index"))
        ]
        wanted.write_text("\n".join([*lines, *(pin.text for path in chosen for pin in pins(path))]) + "\n")
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--dry-run",
            "--ignore-installed",
            "-r",
            str(wanted),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            found = f"pip has not answered in {SECONDS} s"
            yield Problem(f"{chosen[-1]}", found, "an answer", "try again, or leave it out: --no-resolve")
            return
    if done.returncode != 0:
        said = _complaint(done.stdout, done.stderr)
        name = _named(said)
        pin = next((pin for path in chosen for pin in pins(path) if pin.name == name), None)
        where = f"{pin.path}:{pin.line}" if pin else f"{chosen[-1]}"
        fix = f"run: environments/lock.sh {environment.name}"
        yield Problem(where, "; ".join(said[:6])[:500], "packages that go together", fix)


def _complaint(output: str, errors: str) -> list[str]:
    """Return which packages ask for what, where pip says so; else its errors."""
    _, _, cause = output.partition("The conflict is caused by:")
    lines = (cause.partition("\n\n")[0] if cause else errors).splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("WARNING")]


def _named(said: list[str]) -> str:
    """Return the package that pip's first complaint is about; "" where it names none."""
    for line in said:
        for word in line.replace("ERROR:", "").split():
            if "==" in word:
                return normal(word.split("==")[0].strip("(),"))
    return ""
