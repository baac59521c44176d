"""The job of a script: its command, distribution, layout, inputs and outputs, from what a user types."""

from __future__ import annotations

import difflib
import keyword
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from allranks.components.shipped import shipped_folder
from allranks.contract import launchers
from allranks.contract.launch import Distribution
from allranks.contract.launchers import LAUNCHERS, Launcher, Pasted
from allranks.contract.layout import Layout
from allranks.contract.mpi import Mpi
from allranks.contract.own_variables import SIZE
from allranks.contract.pytorch import PyTorch
from allranks.contract.ray import Ray
from allranks.contract.tensorflow import TensorFlow
from allranks.errors import InputError, Problem
from allranks.hardware import sizes
from allranks.hardware.sizes import Size
from allranks.sdk.paths import is_remote, require_file, shown

_LAYOUT = re.compile(r"(?P<instances>[1-9]\d*)x(?P<each>[1-9]\d*)")
_EXAMPLE = "INSTANCESxPROCESSES, such as 2x4"


@dataclass(frozen=True)
class _Kind:
    """A way to launch a script.

    settings:    returns the distribution of a layout
    environment: of those that come with allranks, the one that fits
    launcher:    that starts the processes of an instance; None: Azure ML starts every process
    one_each:    why there is one process on each instance; "" if there may be several
    """

    settings: Callable[[Layout], Distribution]
    environment: str
    launcher: Launcher | None = None
    one_each: str = ""


def _per_node(_: Layout) -> Distribution:
    return PyTorch(1)


_KINDS: Mapping[str, _Kind] = {
    "pytorch": _Kind(lambda layout: PyTorch(layout.process_count_per_instance), "pytorch"),
    "mpi": _Kind(lambda layout: Mpi(layout.process_count_per_instance), "pytorch"),
    "torchrun": _Kind(_per_node, "pytorch", launchers.TORCHRUN),
    "accelerate": _Kind(_per_node, "lightning-transformers", launchers.ACCELERATE),
    "deepspeed": _Kind(_per_node, "deepspeed", launchers.DEEPSPEED),
    "tensorflow": _Kind(
        lambda layout: TensorFlow(layout.instance_count), "tensorflow", one_each="an instance has one worker"
    ),
    "ray": _Kind(lambda _: Ray(), "ray", one_each="the script runs once, and its tasks on every core"),
}
DISTRIBUTIONS = tuple(_KINDS)
"""The ways to launch a script. The last but two start their processes themselves, under the distribution pytorch."""


@dataclass(frozen=True)
class ScriptJob:
    """A script as a command job of Azure ML.

    script:      its absolute path
    code:        the folder that is uploaded, in which it is
    command:     the template
    inputs:      by name, absolute paths, URIs, and ids of assets
    outputs:     the names of folders that it writes
    variables:   environment variables
    size:        the Azure size; "" for that of the compute
    environment: the id of a registered environment, an environment's YAML file, or the folder of one that comes with
                 allranks
    dropped:     options of a pasted launcher that Azure ML decides
    """

    script: Path
    code: Path
    command: str
    distribution: Distribution
    instance_count: int
    inputs: Mapping[str, str]
    outputs: tuple[str, ...]
    variables: Mapping[str, str]
    size: str
    environment: str | Path
    dropped: tuple[str, ...]


def script_job(
    words: Sequence[str],
    *,
    layout: str = "",
    distribution: str = "",
    inputs: Mapping[str, str] | None = None,
    outputs: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    code: Path | None = None,
    size: str = "",
    environment: str = "",
) -> ScriptJob:
    """Return the job of a script.

    words:        the script and its arguments, with or without a launcher in front
    layout:       INSTANCESxPROCESSES; "": as the launcher's options say, or one process for each GPU of the size
    distribution: one of DISTRIBUTIONS; "": that of the launcher, or pytorch
    inputs:       paths and ids by name. ``{NAME}`` in an argument is the path of an input or output; the script gets
                  one that no argument names as ``--NAME PATH``, unless it reads AZURE_ML_INPUT_NAME or
                  AZURE_ML_OUTPUT_NAME
    outputs:      the names of folders that the script writes
    code:         the folder to upload; None: the script's
    size:         an Azure size, such as ND96asr_v4
    environment:  an id of a registered environment, an environment's YAML file, or the name of one that comes with
                  allranks; "": the one that fits the distribution

    Raise InputError for anything that cannot be used.
    """
    pasted = launchers.read(words)
    kind = _KINDS[_kind(pasted, distribution)]
    hardware = sizes.find(size, "--size") if size else None
    counts = _layout(layout, pasted, kind, hardware)
    script, folder = _located(pasted.script[0], code)
    ports = [*(inputs or {}), *outputs]
    _check_names(ports)
    program = _program(script, folder, kind)
    if kind.launcher is not None:
        start = shlex.join(pasted.program) or _kind(pasted, distribution).replace("accelerate", "accelerate launch")
        program = f"{launchers.start_command(kind.launcher, start, counts, shlex.join(pasted.options))} {program}"
    texts = _arguments(pasted.script[1:], inputs or {}, outputs, script)
    return ScriptJob(
        script=script,
        code=folder,
        command=" ".join([program, *texts]),
        distribution=kind.settings(counts),
        instance_count=counts.instance_count,
        inputs={name: _data(name, path) for name, path in (inputs or {}).items()},
        outputs=tuple(outputs),
        variables={**({SIZE: hardware.name} if hardware else {}), **pasted.variables, **(variables or {})},
        size=hardware.name if hardware else "",
        environment=_environment(environment or kind.environment, shipped=not environment),
        dropped=pasted.dropped,
    )


def _kind(pasted: Pasted, distribution: str) -> str:
    if distribution and distribution not in _KINDS:
        raise InputError(_unknown("--distribution", distribution, _KINDS))
    launcher = LAUNCHERS[pasted.name] if pasted.name else None
    own = "mpi" if launcher is launchers.MPIRUN else ""
    own = own or next((name for name, kind in _KINDS.items() if launcher and kind.launcher is launcher), "")
    if own and distribution not in ("", own):
        found = f"{pasted.name} starts the processes, which is --distribution {own}"
        raise InputError(Problem(f"--distribution {distribution}", found, "one of them", "leave out one of them"))
    return own or distribution or "pytorch"


def _layout(text: str, pasted: Pasted, kind: _Kind, size: Size | None) -> Layout:
    match = _LAYOUT.fullmatch(text)
    if text and match is None:
        raise InputError(Problem(f"-j {text}", "it is no layout", _EXAMPLE))
    said = Layout(int(match["instances"]), int(match["each"])) if match else _said(pasted, kind, size)
    given = f"-j {text}" if match else "its other options"
    for option, actual in (
        (pasted.instances, said.instance_count),
        (pasted.each, said.process_count_per_instance),
        (pasted.total, said.world_size),
    ):
        if option is not None and option[1] != actual:
            found = f"{option[0]}, and {given} {'say' if not match else 'says'} {actual}"
            raise InputError(Problem(f"the layout of {pasted.name}", found, "one layout", "leave out one of them"))
    if kind.one_each and said.process_count_per_instance > 1:
        raise InputError(Problem(f"-j {text}", kind.one_each, f"{said.instance_count}x1"))
    if size is not None and not kind.one_each and said.process_count_per_instance > size.processes:
        found = f"{said.process_count_per_instance} processes on each {size.name}, which has {size.gpus} GPUs"
        raise InputError(Problem(f"-j {text}", found, "at most one process for each GPU"))
    return said


def _said(pasted: Pasted, kind: _Kind, size: Size | None) -> Layout:
    """Return the layout that the launcher's options say; without one, that of one process for each GPU of the size."""
    launcher = LAUNCHERS[pasted.name] if pasted.name else None
    each = pasted.each[1] if pasted.each else None
    if pasted.total and pasted.instances:
        return Layout(pasted.instances[1], max(1, pasted.total[1] // pasted.instances[1]))
    if pasted.total:
        return Layout(max(1, pasted.total[1] // each), each) if each else Layout(1, pasted.total[1])
    if each is None and size is not None and not kind.one_each:
        each = size.processes
    if each is None and launcher is not None and launcher.default is None:
        found = f"{pasted.name} without a number starts one process for each GPU"
        raise InputError(Problem("the layout", found, _EXAMPLE, "give -j, or --size for the number of its GPUs"))
    return Layout(pasted.instances[1] if pasted.instances else 1, each or 1)


def _located(script: str, code: Path | None) -> tuple[Path, Path]:
    """Return the absolute paths of a script and of its code. The script's path may begin at the code's folder."""
    path = Path(script)
    if code is not None:
        if not code.is_dir():
            raise InputError(Problem(f"--code {code}", "there is no such folder", "a folder with the script"))
        inside = Path(os.path.abspath(path)).is_relative_to(os.path.abspath(code)) and path.exists()
        path = path if inside or path.is_absolute() else code / path
    require_file(path, "a script", (".py", ".sh"))
    path, folder = (Path(os.path.abspath(each)) for each in (path, code or path.parent))
    if not path.is_relative_to(folder):
        found = f"it does not contain {shown(path)}"
        raise InputError(Problem(f"--code {code}", found, "a folder with the script", "name a folder above it"))
    return path, folder


def _program(script: Path, folder: Path, kind: _Kind) -> str:
    """Return the words that start a script in the folder of its code."""
    name = shlex.quote(script.relative_to(folder).as_posix())
    if kind.launcher is not None and script.suffix != ".py":
        raise InputError(Problem(shown(script), "a launcher starts it with Python", "a Python file (.py)"))
    if kind.launcher is not None:
        return name
    return f"python {name}" if script.suffix == ".py" else f"bash {name}" if script.suffix == ".sh" else f"./{name}"


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if not name.isascii() or not name.isidentifier() or keyword.iskeyword(name):
            expected = "letters, digits and _; a letter or _ first"
            raise InputError(Problem(f"--input or --output {name}", f"{name!r} is not a name", expected))
        if names.count(name) > 1:
            raise InputError(Problem(f"--input or --output {name}", "the name is there twice", "", "rename one"))


def _arguments(words: Sequence[str], inputs: Iterable[str], outputs: Iterable[str], script: Path) -> list[str]:
    """Return the script's arguments as words of the command template."""
    ports = dict.fromkeys(inputs, "in") | dict.fromkeys(outputs, "out")
    names = "|".join(ports)
    # A placeholder may be written as in Azure ML's own files too.
    placeholder = re.compile(rf"(\$\{{\{{(?:in|out)puts\.(?:{names})\}}\}}|\{{(?:{names})\}})" if names else "(?!)")
    texts, unnamed = [], dict(ports)
    for word in words:
        parts = placeholder.split(word)
        found = [re.split(r"[.{}]+", part)[-2] for part in parts[1::2]]
        parts[::2] = [shlex.quote(part) if part or len(parts) == 1 else "" for part in parts[::2]]
        parts[1::2] = [_reference(name, ports) for name in found]
        texts.append("".join(parts))
        unnamed = {name: kind for name, kind in unnamed.items() if name not in found}
    source = script.read_text(encoding="utf-8", errors="replace")
    for name, kind in unnamed.items():
        if f"AZURE_ML_{kind.upper()}PUT_{name}" not in source:
            texts += [f"--{name}", _reference(name, ports)]
    return texts


def _reference(name: str, ports: Mapping[str, str]) -> str:
    return f"${{{{{ports[name]}puts.{name}}}}}"


def _data(name: str, path: str) -> str:
    if is_remote(path):
        return path
    if not os.path.exists(path):
        raise InputError(Problem(f"--input {name}={path}", "there is no such folder", "a folder or a file with data"))
    return os.path.abspath(path)


def _environment(text: str, *, shipped: bool) -> str | Path:
    folder = shipped_folder() / "environments"
    path = Path(text)
    if not shipped and is_remote(text):
        return text
    if not shipped and path.suffix in (".yml", ".yaml"):
        require_file(path, "an environment's YAML file", (".yml", ".yaml"))
        return path.absolute()
    if "/" in text or not (folder / text / "environment.yaml").is_file():
        names = sorted(each.parent.name for each in folder.glob("*/environment.yaml"))
        raise InputError(_unknown("--environment", text, names, "azureml:NAME:VERSION, or a YAML file"))
    return folder / text


def _unknown(option: str, value: str, known: Iterable[str], more: str = "") -> Problem:
    known = [*known]
    similar = difflib.get_close_matches(value, known, n=1)
    expected = ", ".join(known) + (f", {more}" if more else "")
    return Problem(f"{option} {value}", "it is unknown", expected, f"did you mean {similar[0]}?" if similar else "")
