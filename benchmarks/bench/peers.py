"""Virtual environments for the tools that allranks is compared with, whose requirements conflict with ours."""

import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".venv-peers"

PIPELINES = ("kfp>=2.17", "metaflow>=2.19")
TORCHX = ("torchx>=0.7",)


def python(packages: Sequence[str]) -> str | None:
    """Return the Python of an environment with these packages. Create the environment if it is missing; if that fails,
    print a line to stderr and return None.

    packages: requirements, each of the form NAME>=VERSION
    """
    folder = FOLDER / "-".join(package.partition(">")[0] for package in packages)
    interpreter = folder / "bin" / "python"
    completed = folder / ".complete"
    if completed.exists() and completed.read_text() == " ".join(packages):
        return str(interpreter)
    print(f"making {folder} for {', '.join(packages)} ...", file=sys.stderr)
    try:
        venv.create(folder, with_pip=True)
        command = [str(interpreter), "-m", "pip", "install", "--quiet", *packages]
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        print(f"no peers to compare with: {reason.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    completed.write_text(" ".join(packages))
    return str(interpreter)
