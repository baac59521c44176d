"""Inputs and outputs of a step as its processes see them: what each mode means for files on this machine.

Modes are Azure ML's. A mounted input is read-only and stays where it is: a bind mount in the rack, the path itself on
loopback, where nothing can keep a process from writing to it. A downloaded one is copied to each instance. An uploaded
output is written to the instance and copied to the run's folder when the step has succeeded; any other is written
there at once.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from allranks.plan.ports import FILE_TYPES, PRIMITIVES, Output
from allranks.plan.values import Given

DOWNLOADED = frozenset({"download", "eval_download"})
"""Modes in which each instance has a copy of the data."""


@dataclass
class Ports:
    """The ports of a step on one instance.

    inputs, outputs: what the command's placeholders stand for
    read_only:       (source, target) that the instance must mount
    uploads:         (folder on the instance, where it goes)
    """

    inputs: dict[str, str | None] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    read_only: list[tuple[str, str]] = field(default_factory=list)
    uploads: list[tuple[Path, Path]] = field(default_factory=list)


def stage(given: list[Given], outputs: list[tuple[Output, Path]], folder: Path, *, mounts: bool) -> Ports:
    """Makes a step's ports ready on one instance.

    outputs: each port with the place where what is written must end up
    folder:  the instance's own folder
    mounts:  whether the instance can mount; without, a mounted input is a link

    Raises OSError where something cannot be copied.
    """
    ports = Ports()
    for port in given:
        ports.inputs[port.name] = port.value
        target = seen_at(port, folder, mounts=mounts)
        if target is None or port.value is None:
            continue
        source = Path(port.value)
        ports.inputs[port.name] = str(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove(target)
        if port.mode in DOWNLOADED:
            _copy(source, target)
        else:
            target.mkdir() if source.is_dir() else target.touch()
            ports.read_only.append((str(source), str(target)))
    for output, place in outputs:
        seen = place
        if output.mode == "upload" and output.type not in PRIMITIVES:
            seen = folder / "outputs" / output.name
            ports.uploads.append((seen, place))
        for path in (place, seen):
            (path.parent if output.type in FILE_TYPES else path).mkdir(parents=True, exist_ok=True)
        ports.outputs[output.name] = str(seen)
    return ports


def seen_at(port: Given, folder: Path, *, mounts: bool) -> Path | None:
    """Where an instance sees an input, in its own folder; None where it sees the value as it is."""
    if port.value is None or port.type in PRIMITIVES or port.mode == "direct":
        return None
    if port.mode not in DOWNLOADED and (port.mode == "rw_mount" or not mounts):
        return None
    source, target = Path(port.value), folder / "inputs" / port.name
    # Programs look at a file's name, most of all at how it ends.
    return target / source.name if source.is_file() else target


def upload(ports: Ports) -> None:
    """Copies what the instance keeps to where it belongs. Several instances' files end up side by side."""
    for source, target in ports.uploads:
        if source.exists():
            _copy(source, target)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


def working_copy(code: Path | None, folder: Path, artifacts: Path) -> Path:
    """The folder in which a step's processes run on one instance: a copy of the code, with ./outputs leading to the
    run's artifacts."""
    copy = folder / "code"
    _remove(copy)
    if code is None:
        copy.mkdir(parents=True)
    else:
        shutil.copytree(code, copy, symlinks=True, copy_function=shutil.copy)
    outputs = copy / "outputs"
    if outputs.is_dir() and not outputs.is_symlink():
        # The snapshot has files there already: they are artifacts of the run from the start, as on Azure ML.
        shutil.copytree(outputs, artifacts, dirs_exist_ok=True)
        shutil.rmtree(outputs)
    if not os.path.lexists(outputs):
        outputs.symlink_to(artifacts)
    return copy
