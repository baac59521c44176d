"""A virtual environment for the tools that allranks is compared with. Their requirements conflict with ours."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".venv-peers"

PACKAGES = ("kfp>=2.17", "metaflow>=2.19", "torchx>=0.7")


def python() -> str | None:
    """Return the Python of the peers' environment. Create the environment if it is missing; if that fails, print a line
    to stderr and return None."""
    interpreter = FOLDER / "bin" / "python"
    completed = FOLDER / ".complete"
    if completed.exists() and completed.read_text() == " ".join(PACKAGES):
        return str(interpreter)
    print(f"making {FOLDER} for {', '.join(PACKAGES)} ...", file=sys.stderr)
    try:
        venv.create(FOLDER, with_pip=True)
        command = [str(interpreter), "-m", "pip", "install", "--quiet", *PACKAGES]
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        print(f"no peers to compare with: {reason.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    completed.write_text(" ".join(PACKAGES))
    return str(interpreter)
