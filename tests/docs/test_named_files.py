"""Every file that a document names without a link exists."""

import re
from pathlib import Path

from allranks.catalog.find import find_specs

PROJECT = Path(__file__).resolve().parents[2]
MAP = PROJECT / "docs/reports/azure-documents.md"
ARCHITECTURE = PROJECT / "docs/explanation/architecture.md"
PATH = re.compile(r"(?<![\w./-])(?:[\w-]+/)+[\w.-]*\w(?:\.\w+)?/?")


def paths_in(text: str) -> set[str]:
    """Return what looks like a path: words joined by slashes. A placeholder in capitals ends it."""
    return {match.partition("NAME")[0] for match in PATH.findall(text)}


def test_a_file_that_the_map_names_is_there() -> None:
    named = re.findall(r"`((?:components|tests|packages)/[\w./-]+)`", MAP.read_text(encoding="utf-8"))
    assert len(named) > 20
    assert [name for name in named if not (PROJECT / name).exists()] == []


def test_a_file_that_the_architecture_names_exists() -> None:
    named = paths_in(ARCHITECTURE.read_text(encoding="utf-8"))
    assert len(named) > 40
    roots = (PROJECT, PROJECT / "src" / "allranks")
    assert [name for name in sorted(named) if not any((root / name).exists() for root in roots)] == []


def test_a_file_that_the_architecture_names_without_its_folder_exists() -> None:
    named = set(re.findall(r"`(\w+\.py)`", ARCHITECTURE.read_text(encoding="utf-8")))
    known = {path.name for path in (PROJECT / "src" / "allranks").rglob("*.py")}
    assert named
    assert named <= known


def test_a_table_that_the_architecture_names_exists() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    named = re.findall(r"`([A-Z_]+)` in `([\w/]+\.py)`", text)
    assert len(named) > 5
    for table, file in named:
        source = (PROJECT / "src" / "allranks" / file).read_text(encoding="utf-8")
        assert re.search(rf"^{table}\b.*=", source, re.MULTILINE), f"{table} in {file}"


def test_the_architecture_lists_every_package() -> None:
    packages = {path.parent.name for path in (PROJECT / "src" / "allranks").glob("*/__init__.py")}
    architecture = ARCHITECTURE.read_text(encoding="utf-8")
    assert [name for name in sorted(packages) if not re.search(rf"\b{name}\b", architecture)] == []


def test_every_component_is_somebodys_counterpart() -> None:
    text = MAP.read_text(encoding="utf-8")
    trainings = {
        spec.parent.relative_to(PROJECT).as_posix()
        for spec in find_specs(PROJECT / "components")
        if re.match("train_|finetune_|run_", spec.parent.name)
    }
    assert {path for path in trainings if f"`{path}`" not in text} == set()
