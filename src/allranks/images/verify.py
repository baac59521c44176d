"""Run the program `inside` in an image, and return its findings."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.images.build import Engine
from allranks.images.find import EnvironmentFolder
from allranks.images.inside.probe_commands import Finding

SECONDS = 900
"""The program's time limit: it runs about twenty probes, a few of which import a framework."""

_CODE, _EXPECTATIONS = "/verify/code/inside", "/verify/wanted"


def expectations(environment: EnvironmentFolder) -> dict[str, Any]:
    """Return what must be true of an environment's image: its expect.yaml and its registered tags."""
    return {**environment.expected, "tags": environment.registered.get("tags") or {}}


def verify(image: str, wanted: dict[str, Any], engine: Engine) -> tuple[Finding, ...]:
    """Return the program's findings in the image. Raise InputError if it cannot run there."""
    with tempfile.TemporaryDirectory(prefix="allranks-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the user in the image must be able to read it
        (folder / "expectations.json").write_text(json.dumps(wanted), encoding="utf-8")
        mounts = {Path(__file__).with_name("inside"): _CODE, folder: _EXPECTATIONS}
        command = ["env", f"PYTHONPATH={Path(_CODE).parent}", "PYTHONDONTWRITEBYTECODE=1", "python3", "-m"]
        command += ["inside", f"{_EXPECTATIONS}/expectations.json", "--json"]
        completed = _run(engine, image, mounts, command)
    last_lines = completed.stdout.strip().splitlines()[-1:] or [""]
    try:
        return tuple(Finding(**each) for each in json.loads(last_lines[0]))
    except (ValueError, TypeError):
        raise _failed(image, completed) from None


def _run(engine: Engine, image: str, mounts: dict[Path, str], command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command inside of an image. mounts: folders of this machine, and their paths there, which are read-only"""
    volumes = [f"--volume={folder}:{place}:ro" for folder, place in mounts.items()]
    if engine.name != "buildah":
        return _output([engine.path, "run", "--rm", "--pull=never", "--entrypoint=", *volumes, image, *command])
    created = _output([engine.path, "from", "--pull-never", image])
    if created.returncode != 0:
        raise _failed(image, created)
    container = created.stdout.strip()
    try:
        return _output([engine.path, "run", "--isolation", "chroot", *volumes, container, "--", *command])
    finally:
        _output([engine.path, "rm", container])


def _output(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


def _failed(image: str, completed: subprocess.CompletedProcess[str]) -> InputError:
    lines = [line for line in (completed.stderr or completed.stdout).strip().splitlines() if line.strip()]
    found = f"exit code {completed.returncode}: " + (" ".join(lines[-3:]) or "no output")
    fix = "build it: allranks environments build NAME --tag IMAGE"
    return InputError(Problem(f"image {image}", found, "an image on this machine with python3 in it", fix))
