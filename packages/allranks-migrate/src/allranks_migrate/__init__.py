"""Turn scripts, notebooks and DistributedComponents of the retired SDK v1 (azureml-core) into files of azure-ai-ml."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.project.files import create
from allranks.sdk.paths import require_file, shown
from allranks_migrate import distributed_component, evaluation, reader, writer
from allranks_migrate.jobs import Pipeline

_SCRIPTS, _SUFFIXES = (".py", ".ipynb"), (".py", ".ipynb", ".yaml", ".yml")
_INSTALLED = re.compile(r"(^|/)(\.|site-packages/|node_modules/)")
_COMPONENT = re.compile(r"^type: *[\"']?DistributedComponent", re.MULTILINE)
_JOB = re.compile(r"ScriptRunConfig|Estimator\(|HyperDriveConfig|azureml\.pipeline")


@dataclass(frozen=True)
class Migration:
    """A script or a component of v1 as files of azure-ai-ml.

    folder:   the folder that was written
    content:  the pipeline of the script; None for a component
    findings: the constructs that are not converted, or not exactly
    """

    folder: Path
    content: Pipeline | None
    findings: tuple[Problem, ...] = ()

    @property
    def file(self) -> Path:
        """The pipeline or the component."""
        return self.folder / (writer.PIPELINE if self.content else "component.yaml")


def sources(path: Path) -> tuple[Path, ...]:
    """Return the files that describe jobs or components of v1: the file itself, or those below a folder.

    Raise InputError if there is none.
    """
    if not path.is_dir():
        require_file(path, "a script, notebook or DistributedComponent of SDK v1", _SUFFIXES)
        if path.suffix not in _SUFFIXES:
            expected = "a .py, .ipynb or .yaml of SDK v1"
            raise InputError(Problem(shown(path), f"a file that ends with {path.suffix!r}", expected))
        return (path,)
    listed = (each for each in sorted(path.rglob("*")) if each.suffix in _SUFFIXES and each.is_file())
    found = [each for each in listed if not _INSTALLED.search(each.relative_to(path).as_posix()) and _uses_v1(each)]
    if not found:
        expected = "scripts, notebooks or DistributedComponents of SDK v1"
        raise InputError(Problem(shown(path), "no file in it uses azureml-core", expected))
    return tuple(found)


def _uses_v1(path: Path) -> bool:
    text = path.read_text(encoding="utf-8", errors="replace")
    return "azureml" in text and bool(_JOB.search(text)) if path.suffix in _SCRIPTS else bool(_COMPONENT.search(text))


def migrate(source: Path, folder: Path) -> Migration:
    """Write the jobs of a v1 script, or a component, to a new folder. Raise InputError, without writing anything, if
    the file describes none."""
    require_new(folder)
    if source.suffix in _SCRIPTS:
        pipeline, findings = reader.read(evaluation.read(source), folder)
        files, done = writer.contents(pipeline, source, folder, findings), Migration(folder, pipeline, findings)
    else:
        done = Migration(folder, None)
        files = {done.file.name: writer.to_yaml(distributed_component.read(source, folder))}
    folder.mkdir(parents=True, exist_ok=True)
    create(folder, {name: text.encode() for name, text in files.items()})
    return done


def require_new(folder: Path) -> None:
    """Raise InputError if a folder exists."""
    if os.path.lexists(folder):
        raise InputError(Problem(f"--out {folder}", "it exists", "a new folder", "move it, or name another folder"))
