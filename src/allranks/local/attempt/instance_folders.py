"""Prepare the folders of a step and of its instances before its ranks start, and find the paths that they need."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from allranks.local import interpreters
from allranks.local.attempt.next_folders import CODE, FOLDERS, INSTANCE, OUTPUTS, NextFolders
from allranks.local.attempt.staging import Ports, remove, stage
from allranks.local.boot import SOURCE
from allranks.plan import file_tree
from allranks.plan.file_tree import Stop
from allranks.plan.graph import Step
from allranks.plan.output_paths import ARTIFACTS
from allranks.plan.ports import PRIMITIVES, Output
from allranks.plan.values import Given


@dataclass(frozen=True)
class InstanceFolders:
    """A step's folders on one instance.

    code:  the working directory of its processes
    ports: the step's inputs and outputs on this instance
    """

    code: Path
    ports: Ports


def prepare(
    step: Step,
    folder: Path,
    given: list[Given],
    places: list[tuple[Output, Path]],
    count: int,
    *,
    mounts: bool,
    stop: Stop,
    next_folders: NextFolders,
) -> list[InstanceFolders]:
    """Make a step's folders, and on each instance the copy of its code and its ports.

    folder: the step's own
    places: each output with its final path
    count:  how many instances the step has
    mounts: whether an instance can mount
    next_folders: folders that were made beforehand

    Raise OSError if something cannot be copied, StoppedError once `stop` is set.
    """
    code = Path(step.code.folder) if step.code else None
    is_root = any(output.name == ARTIFACTS for output, _ in places)
    if not is_root and next_folders.place(folder):
        if not code and count == 1:
            copy = folder / "instances" / INSTANCE / CODE
            return [InstanceFolders(copy, stage(given, places, copy.parent, mounts=mounts, stop=stop))]
    else:
        folder.mkdir(parents=True, exist_ok=True)
        for name in FOLDERS:
            if name != OUTPUTS:
                (folder / name).mkdir(exist_ok=True)
        _make_artifacts(folder, places)
    prepared = []
    for rank in range(count):
        instance_folder = folder / "instances" / str(rank)
        instance_folder.mkdir(exist_ok=True)
        copy = _working_copy(code, instance_folder, folder / "outputs", stop)
        prepared.append(InstanceFolders(copy, stage(given, places, instance_folder, mounts=mounts, stop=stop)))
    return prepared


def _make_artifacts(folder: Path, places: Sequence[tuple[Output, Path]]) -> None:
    """Make the step's ./outputs. If an output is the root of the step's artifacts, ./outputs is a link into that
    output."""
    root = next((place for output, place in places if output.name == ARTIFACTS), None)
    if root is None:
        (folder / "outputs").mkdir(exist_ok=True)
        return
    (root / "outputs").mkdir(parents=True, exist_ok=True)
    if not os.path.lexists(folder / "outputs"):
        (folder / "outputs").symlink_to(root / "outputs")


def _working_copy(code: Path | None, folder: Path, artifacts: Path, stop: Stop) -> Path:
    """Make the working directory of a step's processes on one instance: a copy of the code, in which ./outputs is a
    link to the step's artifacts."""

    def _copy_code(source: str, target: str) -> object:
        file_tree.check(stop)
        return shutil.copy(source, target)

    copy = folder / "code"
    remove(copy)
    if code is None:
        copy.mkdir(parents=True)
    else:
        shutil.copytree(code, copy, symlinks=True, copy_function=_copy_code)
    outputs = copy / "outputs"
    if outputs.is_dir() and not outputs.is_symlink():
        # Files that the snapshot has there are artifacts of the run from the start, as on Azure ML.
        shutil.copytree(outputs, artifacts, dirs_exist_ok=True)
        shutil.rmtree(outputs)
    if not os.path.lexists(outputs):
        outputs.symlink_to(artifacts)
    return copy


class InstancePaths:
    """The paths for the steps of one run. workspace: the workspace's folder"""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        # Cached for the run, because it reads several folders.
        self._of_interpreter = functools.cache(self._read_interpreter)

    def of(self, interpreter: Path, resolved: Sequence[Given], ports: Ports) -> tuple[str, ...]:
        """Return the existing paths that an instance of a step needs: the workspace, the interpreter, the engine's
        source, the step's data, and the parents of its outputs."""
        data = [port.value for port in resolved if port.value is not None and port.type not in PRIMITIVES]
        parents = [os.path.dirname(path) for path in ports.outputs.values()]
        return (*self._of_interpreter(interpreter), *(path for path in (*data, *parents) if os.path.exists(path)))

    def _read_interpreter(self, interpreter: Path) -> tuple[str, ...]:
        paths = (self._workspace, *interpreters.prefixes(interpreter), SOURCE)
        return tuple(path for path in paths if os.path.exists(path))
