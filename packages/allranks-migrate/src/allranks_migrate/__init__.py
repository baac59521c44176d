"""Turn scripts and notebooks of the retired SDK v1 (azureml-core) into pipelines of azure-ai-ml."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.project.files import create
from allranks.sdk.paths import require_file, shown
from allranks_migrate import evaluation, reader, writer
from allranks_migrate.jobs import Pipeline

_SUFFIXES = (".py", ".ipynb")
_INSTALLED = re.compile(r"(^|/)(\.|site-packages/|node_modules/)")
_JOB = re.compile(r"ScriptRunConfig|Estimator\(|HyperDriveConfig|azureml\.pipeline")


@dataclass(frozen=True)
class Migration:
    """A script of v1 as files of azure-ai-ml.

    folder:   the folder that was written
    pipeline: its file
    findings: what is not carried over, or not exactly
    """

    folder: Path
    content: Pipeline
    findings: tuple[Problem, ...]

    @property
    def pipeline(self) -> Path:
        return self.folder / writer.PIPELINE


def sources(path: Path) -> tuple[Path, ...]:
    """Return the scripts and notebooks that describe jobs of v1: the file itself, or those below a folder.

    Raise InputError if there is none.
    """
    if not path.is_dir():
        require_file(path, "a script or notebook of SDK v1", _SUFFIXES)
        if path.suffix not in _SUFFIXES:
            raise InputError(
                Problem(shown(path), f"a file that ends with {path.suffix!r}", "a .py or .ipynb of SDK v1")
            )
        return (path,)
    listed = (each for each in sorted(path.rglob("*")) if each.suffix in _SUFFIXES and each.is_file())
    found = [each for each in listed if not _INSTALLED.search(each.relative_to(path).as_posix()) and _uses_v1(each)]
    if not found:
        raise InputError(Problem(shown(path), "no file in it uses azureml-core", "scripts or notebooks of SDK v1"))
    return tuple(found)


def _uses_v1(path: Path) -> bool:
    text = path.read_text(encoding="utf-8", errors="replace")
    return "azureml" in text and bool(_JOB.search(text))


def migrate(source: Path, folder: Path) -> Migration:
    """Write the jobs of a v1 script to a new folder. Raise InputError, without writing anything, if it has none."""
    require_new(folder)
    pipeline, findings = reader.read(evaluation.read(source), folder)
    files = writer.contents(pipeline, source, folder, findings)
    folder.mkdir(parents=True, exist_ok=True)
    create(folder, {name: text.encode() for name, text in files.items()})
    return Migration(folder, pipeline, findings)


def require_new(folder: Path) -> None:
    """Raise InputError if a folder exists."""
    if os.path.lexists(folder):
        raise InputError(Problem(f"--out {folder}", "it exists", "a new folder", "move it, or name another folder"))
