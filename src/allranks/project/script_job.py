"""The job of a script: its command, distribution, layout, inputs and outputs, from the command line."""

import keyword
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from allranks.catalog import shipped_folder
from allranks.contract import launchers
from allranks.contract import layout as layouts
from allranks.contract.launch import Distribution
from allranks.contract.launchers import Pasted
from allranks.contract.layout import Layout
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.ray import Ray
from allranks.contract.tensorflow import TensorFlow
from allranks.contract.variables import SIZE
from allranks.errors import InputError, Problem, did_you_mean
from allranks.hardware import sizes
from allranks.sdk.paths import is_remote, require_file, shown

ENVIRONMENTS = {
    "pytorch": "pytorch",
    "mpi": "pytorch",
    "torchrun": "pytorch",
    "accelerate": "lightning-transformers",
    "deepspeed": "deepspeed",
    "tensorflow": "tensorflow",
    "ray": "ray",
}
"""The ways to launch a script, each with its default environment among those that come with allranks."""

_ONE_EACH = {"tensorflow": "an instance has one worker", "ray": "the script runs once, on the cluster's head"}


@dataclass(frozen=True)
class ScriptJob:
    """A script as a command job of Azure ML.

    script:      its absolute path
    code:        the uploaded folder, which contains the script
    command:     the template
    inputs:      by name, absolute paths, URIs, and ids of assets
    outputs:     names of folders that it writes
    variables:   environment variables
    size:        the Azure size; "": that of the compute
    environment: the id of a registered environment, an environment's YAML file, or the folder of one that comes with
                 allranks
    dropped:     options of a pasted launcher that Azure ML sets
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

    @property
    def shm_gib(self) -> int:
        """GiB of /dev/shm: half of the size's memory, as `allranks.layout` sets it, or Azure ML's default."""
        size = sizes.known(self.size) if self.size else None
        return ((size and size.host_memory_gib) or 4) // 2


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

    words: the script and its arguments, with or without a launcher in front

    The other parameters are those of `allranks.launch`. Raise InputError for anything that cannot be used.
    """
    pasted = launchers.read(words)
    launch = _launch(pasted, distribution)
    hardware = sizes.find(size, "--size") if size else None
    counts = _layout(layout, pasted, launch, hardware)
    script, folder = _located(pasted.script[0], code)
    ports = dict.fromkeys(inputs or (), "in") | dict.fromkeys(outputs, "out")
    _check_names([*(inputs or ()), *outputs])
    program = shlex.quote(script.relative_to(folder).as_posix())
    if launch in launchers.STARTS:
        if script.suffix != ".py":
            raise InputError(Problem(shown(script), f"{launch} starts it with Python", "a Python file (.py)"))
        start = shlex.join(pasted.program) or {"accelerate": "accelerate launch"}.get(launch, launch)
        program = f"{launchers.start_command(launch, start, counts, shlex.join(pasted.options))} {program}"
    else:
        program = {".py": "python ", ".sh": "bash "}.get(script.suffix, "./") + program
    per_process = {"mpi": Mpi, "pytorch": PyTorch}.get(launch, lambda _: PyTorch(1))(counts.process_count_per_instance)
    named = {"tensorflow": TensorFlow(counts.instance_count), "ray": Ray()}
    return ScriptJob(
        script=script,
        code=folder,
        command=" ".join([program, *_arguments(pasted.script[1:], ports, script)]),
        distribution=named.get(launch, per_process),
        instance_count=counts.instance_count,
        inputs={name: _data(name, path) for name, path in (inputs or {}).items()},
        outputs=tuple(outputs),
        variables={**({SIZE: hardware.name} if hardware else {}), **pasted.variables, **(variables or {})},
        size=hardware.name if hardware else "",
        environment=_environment(environment) if environment else _shipped() / ENVIRONMENTS[launch],
        dropped=pasted.dropped,
    )


def _launch(pasted: Pasted, distribution: str) -> str:
    own = launchers.LAUNCHERS.get(pasted.launcher, "")
    if distribution and distribution not in ENVIRONMENTS:
        raise InputError(_unknown("--distribution", distribution, ENVIRONMENTS))
    if own and distribution not in ("", own):
        found = f"{pasted.launcher} starts the processes, which is --distribution {own}"
        raise InputError(Problem(f"--distribution {distribution}", found, "one of them", "remove one of them"))
    return own or distribution or "pytorch"


def _layout(text: str, pasted: Pasted, launch: str, size: sizes.Size | None) -> Layout:
    """Return the layout of -j, or of the launcher's options; by default one process for each GPU of the size."""
    said = {name: number for name, (_, number) in pasted.counts.items()}
    if text:
        layout = layouts.parse(text, "-j")
    else:
        for_gpus = 0 if pasted.launcher and launch in ("accelerate", "deepspeed") else 1
        each = said.get("each") or (size.gpus if size and launch not in _ONE_EACH else said.get("each", for_gpus))
        instances = said.get("instances", 1)
        if total := said.get("total"):
            instances = max(1, total // said["each"]) if said.get("each") and "instances" not in said else instances
            each = max(1, total // instances)
        if not each:
            found = f"{pasted.launcher} starts one process for each GPU"
            fix = "use -j, or --size for its number of GPUs"
            raise InputError(Problem("the layout", found, layouts.EXAMPLE, fix))
        layout = Layout(instances, each)
    each = layout.process_count_per_instance
    actual = {"instances": layout.instance_count, "each": each, "total": layout.world_size}
    for name, (option, number) in pasted.counts.items():
        if number not in (0, actual[name]):
            found = f"{option}, and {f'-j {text} says' if text else 'its other options say'} {actual[name]}"
            raise InputError(Problem(f"the layout of {pasted.launcher}", found, "one layout", "remove one of them"))
    if launch in _ONE_EACH and each > 1:
        raise InputError(Problem(f"-j {text}", _ONE_EACH[launch], f"{layout.instance_count}x1"))
    if size is not None and launch not in _ONE_EACH and each > size.gpus:
        found = f"{each} processes on each {size.name}, which has {size.gpus} GPUs"
        raise InputError(Problem("the layout", found, "at most one process for each GPU"))
    return layout


def _located(script: str, code: Path | None) -> tuple[Path, Path]:
    """Return the absolute paths of a script and of its code. The script's path may be relative to the code's folder."""
    path = Path(script)
    if code is not None:
        if not code.is_dir():
            raise InputError(Problem(f"--code {code}", "there is no such folder", "a folder with the script"))
        inside = Path(os.path.abspath(path)).is_relative_to(os.path.abspath(code)) and path.exists()
        path = path if inside else code / path
    what = "a script" if path.suffix else f"a script, or a launcher in front of one: {', '.join(launchers.LAUNCHERS)}"
    require_file(path, what, (".py", ".sh"))
    path, folder = (Path(os.path.abspath(each)) for each in (path, code or path.parent))
    if not path.is_relative_to(folder):
        raise InputError(Problem(f"--code {code}", f"it does not contain {shown(path)}", "a folder with the script"))
    return path, folder


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        wrong = not name.isascii() or not name.isidentifier() or keyword.iskeyword(name)
        if wrong or names.count(name) > 1:
            found = f"{name!r} is not a name" if wrong else "the name is repeated"
            raise InputError(Problem("--input and --output", found, "names of their own, of letters, digits and _"))


def _arguments(words: Sequence[str], ports: Mapping[str, str], script: Path) -> list[str]:
    """Return the script's arguments as words of the command template. ports: "in" or "out", by name"""
    names = "|".join(ports) or "(?!)"
    # A placeholder may also have the form of Azure ML's files.
    placeholder = re.compile(rf"\$\{{\{{(?:in|out)puts\.({names})\}}\}}|\{{({names})\}}")
    texts, unnamed = [], dict(ports)
    for word in words:
        plain, *rest = placeholder.split(word)
        text = shlex.quote(plain) if plain or not rest else ""
        for azure, braced, plain in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
            unnamed.pop(azure or braced, None)
            text += _reference(azure or braced, ports) + (shlex.quote(plain) if plain else "")
        texts.append(text)
    source = script.read_text(encoding="utf-8", errors="replace")
    for name, kind in unnamed.items():
        if f"AZURE_ML_{kind.upper()}PUT_{name}" not in source:
            texts += [f"--{name}", _reference(name, ports)]
    return texts


def _reference(name: str, ports: Mapping[str, str]) -> str:
    return f"${{{{{ports[name]}puts.{name}}}}}"


def _data(name: str, path: str) -> str:
    if not is_remote(path) and not os.path.exists(path):
        raise InputError(Problem(f"--input {name}={path}", "there is no such folder", "a folder or a file with data"))
    return path if is_remote(path) else os.path.abspath(path)


def _environment(text: str) -> str | Path:
    if is_remote(text):
        return text
    path = Path(text)
    if path.suffix in (".yml", ".yaml"):
        require_file(path, "an environment's YAML file", (".yml", ".yaml"))
        return path.absolute()
    names = sorted(each.parent.name for each in _shipped().glob("*/environment.yaml"))
    if text not in names:
        raise InputError(_unknown("--environment", text, [*names, "azureml:NAME:VERSION", "FILE.yml"]))
    return _shipped() / text


def _shipped() -> Path:
    return shipped_folder() / "environments"


def _unknown(option: str, value: str, known: Iterable[str]) -> Problem:
    known = list(known)
    return Problem(f"{option} {value}", "it is unknown", ", ".join(known), did_you_mean(value, known))
