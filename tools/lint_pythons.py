"""Check that files which run with the Python of a step use nothing newer than it has.

usage: python tools/lint_pythons.py

pyproject.toml has the files and their oldest Python, for ruff, which knows the syntax of a version and not its library.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def targets() -> dict[str, list[str]]:
    """Return the files of each version of Python, such as 3.10. A file of two patterns has the older version."""
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]
    versions: dict[Path, int] = {}
    for pattern, name in ruff["per-file-target-version"].items():
        minor = int(name.removeprefix("py3"))
        for file in ROOT.glob(pattern):
            versions[file] = min(minor, versions.get(file, minor))
    files: dict[str, list[str]] = {}
    for file, minor in versions.items():
        files.setdefault(f"3.{minor}", []).append(str(file.relative_to(ROOT)))
    return files


def main() -> int:
    failed = False
    vermin = Path(sys.executable).with_name("vermin")
    for version, files in targets().items():
        command = [vermin, "--quiet", "--no-tips", "--violations", f"--target={version}-", *files]
        failed |= subprocess.run(command, cwd=ROOT, check=False).returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
