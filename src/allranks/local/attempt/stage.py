"""Stage a step on its instances: its folders, the copies of its code, its inputs and outputs, with Azure ML's modes.

A mounted input is read-only and is not copied. In the rack it is a bind mount; on loopback it is the path itself, and
nothing prevents a process from writing to it. A downloaded input is copied to each instance. An uploaded output is
written on the instance, and copied to the run's folder when the step has succeeded. All other outputs are written there
directly.

On Azure ML, inputs and outputs are mounted at paths without spaces and other characters that a shell treats specially,
so commands do not quote them. Here a workspace, an input or a step may have any name. A path with such a name is
reached through a link in the instance's temporary folder: ``/home/me/my project/.allranks/...`` is
``/tmp/my_project/.allranks/...``.
"""

import asyncio
import contextlib
import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from allranks.contract import logs
from allranks.images import rootfs
from allranks.local import interpreters
from allranks.local.attempt.copying import copy
from allranks.local.boot import SOURCE
from allranks.local.instances import temporary
from allranks.plan import file_tree
from allranks.plan.file_tree import Stop
from allranks.plan.graph import Step
from allranks.plan.ports import FILE_TYPES, MOUNTED, PRIMITIVES, Output
from allranks.plan.values import ResolvedInput

_PLAIN = re.compile(r"[\w@%+=:,./-]*", re.ASCII)
_SPECIAL = re.compile(r"[^\w@%+=:,.-]", re.ASCII)

DOWNLOADED = frozenset({"download", "eval_download"})
"""Modes in which each instance has a copy of the data."""


@dataclass
class StagedInstance:
    """The folders and ports of a step on one instance.

    code:            the working directory of its processes
    inputs, outputs: values of the command's placeholders
    read_only:       (source, target) that the instance must mount
    uploads:         (folder on the instance, destination)
    skipped:         a line for each entry that was not copied because it has no content
    keep:            the paths of this machine that stay visible in the instance
    tmp, inner_tmp:  the temporary folder: its path on this machine, and as the instance sees it
    """

    code: Path
    inputs: dict[str, str | None] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    read_only: list[tuple[str, str]] = field(default_factory=list)
    uploads: list[tuple[Path, Path]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    keep: tuple[str, ...] = ()
    tmp: str = ""
    inner_tmp: str = ""


def _stage_inputs(
    instance: StagedInstance, inputs: list[ResolvedInput], folder: Path, *, mounts: bool, stop: Stop
) -> None:
    """Stage a step's inputs on one instance. folder: the instance's own"""
    for port in inputs:
        instance.inputs[port.name] = port.value
        target = staged_path(port, folder, mounts=mounts)
        if target is None or port.value is None:
            continue
        source = Path(port.value)
        instance.inputs[port.name] = str(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        remove(target)
        if port.mode in DOWNLOADED:
            instance.skipped += [f"input {port.name}: {text}" for text in copy(source, target, stop)]
        else:
            target.mkdir() if os.path.isdir(source) else target.touch()
            instance.read_only.append((str(source), str(target)))


def staged_path(port: ResolvedInput, folder: Path, *, mounts: bool) -> Path | None:
    """Return the path of an input in an instance's own folder; None if the instance uses the value unchanged."""
    if port.value is None or port.type in PRIMITIVES or port.mode == "direct":
        return None
    if port.mode not in DOWNLOADED and (port.mode == "rw_mount" or not mounts):
        return None
    source, target = Path(port.value), folder / "inputs" / port.name
    # Programs may depend on a file's name, especially its suffix.
    return target / plain_name(source.name) if os.path.isfile(source) else target


def write_path(output: Output, destination: Path, folder: Path) -> Path:
    """Return the path to which an instance writes an output. destination: its final path. folder: the instance's own"""
    uploaded = output.mode == "upload" and output.type not in PRIMITIVES
    # A link to a file would be replaced by a program that writes the file under another name first.
    if uploaded or (output.type in FILE_TYPES and not is_plain(destination.name)):
        return folder / "outputs" / output.name
    return destination


def read_only_inputs(inputs: Sequence[ResolvedInput], message: str) -> list[str]:
    """Return the inputs that a program may have tried to write to: the inputs whose path is in its error message, or
    all mounted inputs if the message contains no path."""
    mounted = [port.name for port in inputs if port.mode in MOUNTED and port.value is not None]
    named = [name for name in mounted if re.search(rf"/inputs/{re.escape(name)}(?![\w-])", message)]
    return named or ([] if re.search(r"[' ]/", message) else mounted)


def upload(instance: StagedInstance, stop: Stop) -> None:
    """Copy an instance's uploaded outputs to their destinations. Files of several instances are merged.

    Raise OSError if something cannot be copied, StoppedError once `stop` is set.
    """
    for source, target in instance.uploads:
        if os.path.exists(source):
            instance.skipped += [f"output {source.name}: {text}" for text in copy(source, target, stop)]


def remove(path: Path) -> None:
    """Remove a file, a link or a folder, if it exists."""
    if path.is_symlink() or os.path.isfile(path):
        path.unlink()
    elif os.path.isdir(path):
        shutil.rmtree(path)


def link(instance: StagedInstance, data: Collection[str]) -> None:
    """Replace the paths of a step's ports on one instance by plain ones, and create the links that they need.

    data: the names of the inputs that are paths
    """
    links = Links(instance.inner_tmp)
    for name, value in instance.inputs.items():
        if name in data and value is not None:
            instance.inputs[name] = links.plain(value)
    for name, path in instance.outputs.items():
        instance.outputs[name] = links.plain(path)
    links.create(Path(instance.tmp))


def is_plain(path: str) -> bool:
    """Return whether a shell reads a path as one unchanged word."""
    return _PLAIN.fullmatch(path) is not None


def plain_name(name: str) -> str:
    """Return the name of a file without special characters. Its suffix is the same if it has no special characters."""
    return _SPECIAL.sub("_", name)


class Links:
    """The links of one instance.

    inner_path: the path of the folder with the links, as the instance sees it
    """

    def __init__(self, inner_path: str) -> None:
        self._seen = inner_path
        self._names: dict[str, str] = {}

    def plain(self, path: str) -> str:
        """Return a plain path that leads to the same file or folder.

        The link replaces the innermost folder with a special name. The files below it are not links, so a program may
        replace or remove them.
        """
        if is_plain(path) or not os.path.isabs(path):
            return path
        target, below = path, ""
        while is_plain(os.path.basename(target)):
            target, name = os.path.split(target)
            below = f"/{name}{below}"
        return f"{self._seen}/{self._name_of(target)}{below}"

    def create(self, folder: Path) -> None:
        """Create the links. folder: as the engine sees it"""
        for target, name in self._names.items():
            os.symlink(target, folder / name)

    def _name_of(self, target: str) -> str:
        if target not in self._names:
            name, used = plain_name(os.path.basename(target)), self._names.values()
            number = next(number for number in range(len(used) + 1) if _add_number(name, number) not in used)
            self._names[target] = _add_number(name, number)
        return self._names[target]


def _add_number(name: str, number: int) -> str:
    return f"{name}-{number}" if number else name


def prepare(
    step: Step,
    folder: Path,
    inputs: list[ResolvedInput],
    outputs: list[tuple[Output, Path]],
    count: int,
    *,
    mounts: bool,
    stop: Stop,
) -> list[StagedInstance]:
    """Make a step's folders, and on each instance the copy of its code and its ports.

    folder:  the folder of the step
    outputs: each output with its final path
    count:   the number of instances
    mounts:  whether an instance can mount. If not, a mounted input is the path itself.

    Raise OSError if something cannot be copied, StoppedError once `stop` is set.
    """
    code = Path(step.code.folder) if step.code else None
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("reports", logs.FOLDER, "instances"):
        (folder / name).mkdir(exist_ok=True)
    _make_artifacts(folder, outputs)
    staged = []
    for rank in range(count):
        instance_folder = folder / "instances" / str(rank)
        instance_folder.mkdir(exist_ok=True)
        instance = StagedInstance(_working_copy(code, instance_folder, folder / "outputs", stop))
        _stage_inputs(instance, inputs, instance_folder, mounts=mounts, stop=stop)
        for output, destination in outputs:
            inner_path = write_path(output, destination, instance_folder)
            if inner_path != destination:
                instance.uploads.append((inner_path, destination))
            for path in (destination, inner_path):
                (path.parent if output.type in FILE_TYPES else path).mkdir(parents=True, exist_ok=True)
            instance.outputs[output.name] = str(inner_path)
        staged.append(instance)
    return staged


def _make_artifacts(folder: Path, outputs: Sequence[tuple[Output, Path]]) -> None:
    """Make the step's ./outputs. If an output is the root of the step's artifacts, ./outputs is a link into that
    output."""
    root = next((destination for output, destination in outputs if output.holds_artifacts), None)
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
    if os.path.isdir(outputs) and not outputs.is_symlink():
        # Files that the snapshot has there are artifacts of the run from the start, as on Azure ML.
        shutil.copytree(outputs, artifacts, dirs_exist_ok=True)
        shutil.rmtree(outputs)
    if not os.path.lexists(outputs):
        outputs.symlink_to(artifacts)
    return copy


def required_paths(
    workspace: str, interpreter: Path, resolved: Sequence[ResolvedInput], outputs: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the existing paths that an instance of a step needs: the workspace's folder, the interpreter, the engine's
    source, the step's data, and the parents of its outputs."""
    data = [port.value for port in resolved if port.value is not None and port.type not in PRIMITIVES]
    parents = [os.path.dirname(path) for path in outputs.values()]
    paths = (workspace, *_interpreter_paths(interpreter), *data, *parents)
    return tuple(path for path in paths if os.path.exists(path))


@cache
def _interpreter_paths(interpreter: Path) -> tuple[str, ...]:
    # In a container, other packages of this machine must not hide packages of the image.
    return (f"{SOURCE}/allranks",) if rootfs.of(interpreter) else (*interpreters.prefixes(interpreter), SOURCE)


TMP = "/tmp"
"""The path of an instance's own temporary folder in the rack."""


@contextlib.contextmanager
def temporary_folders(root: Path, instances: Sequence[StagedInstance], *, own_tmp: bool) -> Iterator[None]:
    """Give each instance a temporary folder for the duration of the block. Remove the folders afterwards in the
    background.

    root:    the folder on the workspace's disk for instances with their own /tmp
    own_tmp: whether each instance has its own /tmp

    An instance without its own /tmp gets the folder's path, which is short, because the path of a Unix socket may have
    107 characters.
    """
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        if own_tmp:
            made = temporary.make(root, len(instances))
            stack.callback(loop.run_in_executor, None, made.remove)
            for instance, folder in zip(instances, made.instances, strict=True):
                instance.tmp, instance.inner_tmp = str(folder), TMP
        else:
            parent = None if is_plain(gettempdir()) else TMP
            for instance in instances:
                shared = TemporaryDirectory(prefix="allranks-", dir=parent, ignore_cleanup_errors=True)
                stack.callback(loop.run_in_executor, None, shared.cleanup)
                instance.tmp = instance.inner_tmp = shared.name
        yield
