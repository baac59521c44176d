"""Check all imports against docs/explanation/architecture.md: a package imports from the floors below its own.

usage: python tools/lint_floors.py

The page has the only table of the floors. import-linter reads contracts from a file, which is made from the table here.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/explanation/architecture.md"
RUNTIME = "runtime"
"""It has no line of its own. It imports only from the floors that name it, and the engine does not import it."""

BY_NAME = (
    "allranks -> allranks.api.*",  # a name of the API is imported when it is first used
    "allranks -> allranks_client.client",  # and so is the package's
)


def floors(page: str) -> list[tuple[tuple[str, ...], bool]]:
    """Return the packages of each floor, the highest first, and whether the runtime may import them.

    Raise ValueError if the page has no table.
    """
    table = re.search(r"^## Layers$.*?^```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    if table is None:
        raise ValueError(f"{PAGE}: no block with the floors below the heading Layers")
    found = []
    for line in table[1].splitlines():
        names, *_ = re.split(r"\s{2,}", line.strip())
        found.append((tuple(names.split(" | ")), f"<- {RUNTIME}" in line))
    return found


def module(name: str) -> str:
    """Return the module of a name in the table: packages beside the core have an underscore."""
    return name if name.startswith("allranks_") else f"allranks.{name}"


def contracts(page: str) -> str:
    """Return import-linter's configuration as TOML."""
    table = floors(page)
    shared = [name for names, is_shared in table for name in names if is_shared]
    engine = [name for names, is_shared in table for name in names if not is_shared]
    packages = [name for name in engine if name.startswith("allranks_")]
    core = [module(name) for name in engine if name not in packages]
    layers = [" | ".join(map(module, names)) for names, _ in table]
    above = [module(name) for name in [RUNTIME, *shared]]
    return f"""\
[tool.importlinter]
root_packages = {["allranks", *packages]}

[[tool.importlinter.contracts]]
name = "Each floor imports from those below it"
type = "layers"
layers = {layers}
ignore_imports = {list(BY_NAME)}

[[tool.importlinter.contracts]]
name = "The runtime, which is copied beside a component's code, imports from its own floors"
type = "layers"
layers = {above}

[[tool.importlinter.contracts]]
name = "The runtime imports nothing of the engine"
type = "forbidden"
source_modules = ["allranks.{RUNTIME}"]
forbidden_modules = {core}

[[tool.importlinter.contracts]]
name = "The engine imports nothing of the runtime"
type = "forbidden"
source_modules = {core}
forbidden_modules = ["allranks.{RUNTIME}"]

[[tool.importlinter.contracts]]
name = "No package has a cycle among its modules"
type = "acyclic_siblings"
ancestors = {["allranks", "allranks.**", *packages, *(f"{package}.**" for package in packages)]}
"""


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    listed = {name for names, _ in floors(page) for name in names}
    there = {
        path.stem
        for path in (ROOT / "src" / "allranks").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    if missing := sorted(there - listed - {"__init__", RUNTIME}):
        print(f"{PAGE}: {', '.join(missing)} of src/allranks is missing in the table of layers", file=sys.stderr)
        return 1
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
        file.write(contracts(page))
        file.flush()
        command = [Path(sys.executable).with_name("lint-imports"), "--no-logo", file.name]
        return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
