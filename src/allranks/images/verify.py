"""Run the program of the component verify_environment in an image."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.images.build import Engine

SECONDS = 900
"""The program's time limit: it runs about twenty probes, a few of which import a framework."""

_CODE, _EXPECTATIONS = "/verify/code", "/verify/wanted"


def verify(image: str, wanted: dict[str, Any], engine: Engine, code: Path, options: Sequence[str]) -> int:
    """Run the program in the image, print what it prints, and return its exit code: 1 if something is wrong.

    wanted:  what must be true inside
    code:    the component's folder
    options: of the program

    Raise InputError if it cannot run there.
    """
    with tempfile.TemporaryDirectory(prefix="allranks-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the user in the image must be able to read it
        (folder / "expectations.json").write_text(json.dumps(wanted), encoding="utf-8")
        volumes = [f"--volume={code}:{_CODE}:ro", f"--volume={folder}:{_EXPECTATIONS}:ro"]
        program = ["python3", f"{_CODE}/verify.py", f"{_EXPECTATIONS}/expectations.json", *options]
        if engine.name != "buildah":
            run = [engine.path, "run", "--rm", "--pull=never", "--entrypoint=", *volumes, image, *program]
            completed = _output(run)
        elif (completed := _output([engine.path, "from", "--pull-never", image])).returncode == 0:
            container = completed.stdout.strip()
            completed = _output([engine.path, "run", "--isolation", "chroot", *volumes, container, "--", *program])
            _output([engine.path, "rm", container])
    if completed.returncode in (0, 1) and completed.stdout:
        sys.stdout.write(completed.stdout)
        return completed.returncode
    lines = [line for line in (completed.stderr or completed.stdout).splitlines() if line.strip()]
    found = f"exit code {completed.returncode}: " + (" ".join(lines[-3:]) or "no output")
    fix = "build it: allranks environments build NAME --tag IMAGE"
    raise InputError(Problem(f"image {image}", found, "an image on this machine with python3 in it", fix))


def _output(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
