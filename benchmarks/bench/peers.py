"""A virtual environment for the tools that we compare ourselves with: what they need clashes with what we need."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".venv-peers"

PACKAGES = ("kfp>=2.17", "metaflow>=2.19")


def python() -> str | None:
    """The Python of that environment, which is made where it is missing. None, with a line on stderr, where it cannot
    be made."""
    found = FOLDER / "bin" / "python"
    done = FOLDER / ".complete"
    if done.exists():
        return str(found)
    print(f"making {FOLDER} for {', '.join(PACKAGES)} ...", file=sys.stderr)
    try:
        venv.create(FOLDER, with_pip=True)
        command = [str(found), "-m", "pip", "install", "--quiet", *PACKAGES]
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        print(f"no peers to compare with: {reason.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    done.touch()
    return str(found)
