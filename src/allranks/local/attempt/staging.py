"""Stage the inputs and outputs of a step on an instance, with Azure ML's modes for files on this machine.

A mounted input is read-only and is not copied. In the rack it is a bind mount; on loopback it is the path itself, and
nothing prevents a process from writing to it. A downloaded input is copied to each instance. An uploaded output is
written on the instance, and moved to the run's folder when the step has succeeded. All other outputs are written there
directly.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from allranks.local.attempt.copying import copy
from allranks.local.attempt.plain_names import is_plain, plain_name
from allranks.plan.file_tree import Stop
from allranks.plan.ports import FILE_TYPES, PRIMITIVES, Output
from allranks.plan.values import Given

DOWNLOADED = frozenset({"download", "eval_download"})
"""Modes in which each instance has a copy of the data."""


@dataclass
class Ports:
    """The ports of a step on one instance.

    inputs, outputs: values of the command's placeholders
    read_only:       (source, target) that the instance must mount
    uploads:         (folder on the instance, destination)
    left_out:        a line for each entry that was not copied because it has no content
    """

    inputs: dict[str, str | None] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    read_only: list[tuple[str, str]] = field(default_factory=list)
    uploads: list[tuple[Path, Path]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def stage(
    given: list[Given],
    outputs: list[tuple[Output, Path]],
    folder: Path,
    *,
    mounts: bool,
    stop: Stop | None = None,
) -> Ports:
    """Stage a step's ports on one instance.

    outputs: each output with its final path
    folder:  the instance's own folder
    mounts:  whether the instance can mount. If not, a mounted input is the path itself.

    Raise OSError if something cannot be copied, StoppedError once `stop` is set.
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
        remove(target)
        if port.mode in DOWNLOADED:
            ports.left_out += [f"input {port.name}: {text}" for text in copy(source, target, stop)]
        else:
            target.mkdir() if source.is_dir() else target.touch()
            ports.read_only.append((str(source), str(target)))
    for output, place in outputs:
        seen = seen_output(output, place, folder)
        if seen != place:
            ports.uploads.append((seen, place))
        for path in (place, seen):
            (path.parent if output.type in FILE_TYPES else path).mkdir(parents=True, exist_ok=True)
        ports.outputs[output.name] = str(seen)
    return ports


def seen_at(port: Given, folder: Path, *, mounts: bool) -> Path | None:
    """Return the path of an input in an instance's own folder; None if the instance uses the value as it is."""
    if port.value is None or port.type in PRIMITIVES or port.mode == "direct":
        return None
    if port.mode not in DOWNLOADED and (port.mode == "rw_mount" or not mounts):
        return None
    source, target = Path(port.value), folder / "inputs" / port.name
    # Programs may depend on a file's name, especially its suffix.
    return target / plain_name(source.name) if source.is_file() else target


def seen_output(output: Output, place: Path, folder: Path) -> Path:
    """Return the path to which an instance writes an output. place: its final path. folder: the instance's own"""
    uploaded = output.mode == "upload" and output.type not in PRIMITIVES
    # A link to a file would be replaced by a program that writes the file under another name first.
    if uploaded or (output.type in FILE_TYPES and not is_plain(place.name)):
        return folder / "outputs" / output.name
    return place


def upload(ports: Ports, stop: Stop | None = None) -> None:
    """Bring an instance's uploaded outputs to their destinations. Files of several instances are merged.

    The files are moved where that is safe, so what the instance wrote is no longer in its own folder. All its processes
    must have ended.

    Raise OSError if something cannot be copied, StoppedError once `stop` is set.
    """
    for source, target in ports.uploads:
        if source.exists():
            ports.left_out += [f"output {source.name}: {text}" for text in copy(source, target, stop, move=True)]


def remove(path: Path) -> None:
    """Remove a file, a link or a folder, if it is there."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)
