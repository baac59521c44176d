"""What `boot.command` starts has no site-packages: an import of anything but the standard library would fail there."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from allranks.local.boot import SOURCE
from allranks.local.instances.supervisor import INSTANCE_KINDS

LOCAL = Path(SOURCE, "allranks", "local")
SPARED = {"__future__", *sys.stdlib_module_names}


def started(folder: Path) -> set[str]:
    """Return the modules that `boot.command("...")` starts, as the sources below a folder name them."""
    return {
        f"allranks.local.{call.args[0].value.partition(':')[0]}"
        for file in folder.rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and ast.unparse(call.func) == "boot.command"
        and isinstance(call.args[0], ast.Constant)
    }


def imported(source: str) -> Iterator[str]:
    """Yield what a module imports, also within a function; not what a type checker alone imports."""
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            assert not node.level
            # A name may be a module too.
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("__import__", "import_module"):
            yield f"<{ast.unparse(node)}>"
        waiting += ast.iter_child_nodes(node)


def file_of(module: str, root: Path) -> Path | None:
    path = root / module.replace(".", "/")
    return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)


def reached(modules: set[str], root: Path) -> tuple[set[str], dict[str, str]]:
    """Return the modules of allranks that these modules import, and what they import that is not in the standard
    library: name -> the module that imports it."""
    seen: set[str] = set()
    others: dict[str, str] = {}
    waiting = [(module, "") for module in modules]
    while waiting:
        name, importer = waiting.pop()
        if not name:
            continue
        if name.partition(".")[0] != "allranks":
            if name.partition(".")[0] not in SPARED:
                others[name] = importer
            continue
        file = file_of(name, root)
        if name in seen or file is None:
            continue
        seen.add(name)
        waiting.append((name.rpartition(".")[0], name))
        waiting += ((inner, name) for inner in imported(file.read_text(encoding="utf-8")))
    return seen, others


def test_they_import_the_standard_library_alone() -> None:
    starts = started(LOCAL)
    assert starts
    # The supervisor imports the one that it is started for.
    starts |= {kind.isolation.partition(":")[0] for kind in INSTANCE_KINDS.values()}
    seen, others = reached(starts, Path(SOURCE))
    assert starts <= seen
    # The dynamic import loads a kind's isolation, added above.
    assert others == {"<import_module(module)>": "allranks.local.instances.instance"}
    assert "allranks.secrets" not in seen, "its patterns are another package's"


@pytest.mark.parametrize("module", ["supervisor", "launchers.rsh", "launchers.mpi_rank"])
def test_what_each_run_or_rank_waits_for_imports_little(module: str) -> None:
    show = f"import sys; sys.path.append({SOURCE!r}); import allranks.local.{module}; print(*sys.modules)"
    command = [sys.executable, "-I", "-S", "-c", show]
    imported = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert f"allranks.local.{module}" in imported
    assert not {"asyncio", "dataclasses", "inspect", "pathlib", "subprocess", "urllib"} & set(imported)
