"""What an environment's definition installs with pip: its conda specification, a requirements file, or a Dockerfile."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.images import dockerfile
from allranks.images.build import needed
from allranks.plan.environment import Environment
from allranks.sdk import yaml_lines
from allranks.sdk.paths import shown
from allranks.text import count

_SPEC = re.compile(r"(?:(?P<channel>[\w./:-]+)::)?(?P<name>[\w.-]+)\s*(?P<version>[^#\[]*?)\s*(?P<rest>\[.*)?")
_FUZZY = re.compile(r"=\s*([^=\s<>!~|]+)")
_BUILD = re.compile(r"={0,2}\s*([^=\s<>!~|,]+)\s*=\s*[^=\s]+")
_EXACT = re.compile(r"(?:==\s*)?([^=\s<>!~|,]+)")
_IMAGE = re.compile(r"(?:.*/)?python(?::(?:(?P<version>3\.\d+)\b.*|(?!2).*))?")

ON_PYPI = {
    "matplotlib-base": "matplotlib",
    "msgpack-python": "msgpack",
    "opencv": "opencv-python-headless",
    "py-lightgbm": "lightgbm",
    "py-xgboost": "xgboost",
    "pytables": "tables",
    "python-graphviz": "graphviz",
    "pytorch": "torch",
    "pytorch-gpu": "torch",
    "tensorflow-base": "tensorflow",
}
"""Names on PyPI of packages that conda's channels call otherwise."""

NOT_ON_PYPI = frozenset({
    "_libgcc_mutex", "_openmp_mutex", "blas", "c-compiler", "ca-certificates", "compilers", "cpuonly", "cuda-toolkit",
    "cudatoolkit", "cudnn", "cxx-compiler", "ffmpeg", "gcc", "git", "gxx", "libblas", "libgcc-ng", "libstdcxx-ng",
    "mpich", "nccl", "nodejs", "nomkl", "openjdk", "openssl", "pytorch-cuda", "pytorch-mutex", "r-base", "r-essentials",
})  # fmt: skip
"""Packages of conda's channels without a Python package, as far as they are common."""


@dataclass(frozen=True)
class Packages:
    """What an environment installs.

    python:       the versions of Python as in PEP 440, such as ==3.9.*; "" if the definition names none
    requirements: lines of a requirements file, in order
    from_conda:   those of the lines that name packages of conda
    with_conda:   whether conda would make the environment
    files:        files of the user whose content is installed
    lacking:      parts of the definition that pip cannot install, as text
    """

    python: str = ""
    requirements: tuple[str, ...] = ()
    from_conda: tuple[str, ...] = ()
    with_conda: bool = False
    files: tuple[Path, ...] = ()
    lacking: tuple[str, ...] = ()

    @property
    def lacking_packages(self) -> bool:
        """Whether a package of conda is among what pip cannot install."""
        return any(each.startswith("conda ") for each in self.lacking)


NOTHING = Packages()


def of(environment: Environment) -> Packages | None:
    """Return what an environment installs; None if its definition is not on this machine, or only names an image.

    Raise InputError for a definition that cannot be read.
    """
    if environment.definition:
        image = (f"image {environment.image}",) if environment.image and not _python_of(environment.image) else ()
        found = _of_conda(json.loads(environment.definition), Path(environment.file))
        return replace(found, lacking=(*image, *found.lacking))
    if environment.folder:
        return _of_dockerfile(Path(environment.folder), environment.dockerfile)
    if _IMAGE.fullmatch(environment.image) is None:
        return None
    python = _python_of(environment.image)
    return Packages(python, lacking=() if python else (f"image {environment.image}",))


def _python_of(image: str) -> str:
    """Return the version of Python of an official image python:3.N; "" for another image."""
    match = _IMAGE.fullmatch(image)
    return f"=={match['version']}.*" if match and match["version"] else ""


def conda_problems(specification: object, file: Path) -> Iterator[Problem]:
    """Yield what is wrong with a conda specification, without the requirements files that it names. file: as below"""
    if not isinstance(specification, dict):
        packages = ", ".join(str(specification).split()[:5]) if isinstance(specification, str) else "PACKAGE==VERSION"
        fix = f"name a YAML file with dependencies: [python=3.11, pip, {{pip: [{packages}]}}]"
        found = "a text or a list, and no conda specification"
        yield Problem(shown(file), found, "keys and values, among them dependencies", fix)
        return
    if isinstance(channels := specification.get("channels"), str):
        yield Problem(place_of(file, "channels"), f"channels {channels!r}", "a list", f"write channels: [{channels}]")
    listed = specification.get("dependencies")
    if not isinstance(listed, list) or not listed:
        fix = "write dependencies: [python=3.11, pip, {pip: [PACKAGE==VERSION]}]"
        yield Problem(place_of(file, "dependencies"), f"dependencies {listed!r}", "a list of packages", fix)
        return
    for entry in listed:
        pip = entry.get("pip") if isinstance(entry, dict) and list(entry) == ["pip"] else None
        if isinstance(pip, list):
            yield from (problem for line in pip for problem in _requirement_problems(str(line), file))
        elif not isinstance(entry, str):
            place = place_of(file, str(next(iter(entry), "")) if isinstance(entry, dict) else str(entry))
            fix = "put a - before each package"
            yield Problem(place, f"dependency {entry!r}", "a package, or pip: and a list of packages", fix)


_RENAMED = {"sklearn": "scikit-learn"}
"""Names on PyPI that install nothing but an error, with the package that was meant."""


def _requirement_problems(line: str, file: Path) -> Iterator[Problem]:
    """Yield why pip does not install a line of a requirements file."""
    from packaging.requirements import InvalidRequirement, Requirement

    text = re.split(r"(?:^|\s)#|\s--|\\$", line, maxsplit=1)[0].strip()
    if not text or text.startswith("-") or re.search(r"[/$]|\.(?:whl|zip|gz)$", text):
        return  # an option, a path, or what a variable holds
    try:
        name = Requirement(text).name
    except InvalidRequirement as error:
        why = str(error).partition("\n")[0]
        yield Problem(place_of(file, text), f"{text}, which pip does not read: {why}", "NAME==VERSION", "correct it")
        return
    if meant := _RENAMED.get(name.lower()):
        found = f"{text}, a name that installs nothing but an error"
        yield Problem(place_of(file, text), found, meant, f"write {text.replace(name, meant)}")


def _of_conda(specification: Mapping[str, Any], file: Path) -> Packages:
    """Return the packages of a conda specification. file: that contains it, for messages and relative paths"""
    if problems := list(conda_problems(specification, file)):
        raise InputError.of(problems)
    listed = specification["dependencies"]
    python, requirements, files, lacking = "", list[str](), list[Path](), list[str]()
    pip: list[str] = []
    for entry in listed:
        if isinstance(entry, dict):
            pip += map(str, entry.get("pip") or ())
            continue
        name, version = _pip_form(str(entry))
        if name == "python":
            # The last part of the version is not worth a download.
            python = re.sub(r"^==(\d+\.\d+).*", r"==\1.*", version or "")
        elif name not in ("pip", "conda"):
            target = (
                lacking if version is None or name in NOT_ON_PYPI or name.startswith(("r-", "lib")) else requirements
            )
            target.append(f"conda package {entry}" if target is lacking else f"{ON_PYPI.get(name, name)}{version}")
    from_conda = tuple(requirements)
    requirements += _expanded(pip, file, files)
    return Packages(python, tuple(requirements), from_conda, True, tuple(files), tuple(lacking))


def _pip_form(entry: str) -> tuple[str, str | None]:
    """Return the name of a package of conda, and the versions as pip writes them: ("numpy", "==1.21.*") for numpy=1.21.

    None for versions that pip has no form for.
    """
    match = _SPEC.fullmatch(entry.strip())
    if match is None or match["rest"]:
        return entry, None
    name, version = match["name"].lower(), match["version"].strip()
    if not version or version == "*":
        return name, ""
    if (built := _BUILD.fullmatch(version)) or (not version.startswith("=") and (built := _EXACT.fullmatch(version))):
        return name, f"=={built[1]}"
    if fuzzy := _FUZZY.fullmatch(version):
        return name, f"=={fuzzy[1].removesuffix('.*').removesuffix('*')}.*"
    if "|" in version:
        return name, None
    return name, version.replace(" ", "")


_LOCAL = ("-c", "--constraint", "-e", "--editable", "-f", "--find-links")
"""Options whose value may be a path."""


def _expanded(lines: Iterable[str], file: Path, files: list[Path]) -> Iterator[str]:
    """Yield the lines of a requirements file, those of the files that it names in place of -r, with absolute paths.

    file:  that contains the lines
    files: gets the files and folders that the lines name
    """
    for line in lines:
        text = " ".join(re.split(r"(?:^|\s)#", line, maxsplit=1)[0].split())
        option, _, value = re.sub(r"^(-[rcef]|--\w[\w-]*)[\s=]+", r"\1 ", text).partition(" ")
        if option in ("-r", "--requirement"):
            path = file.parent / value
            lines_of_path = _read(path, file, line)
            if problems := [problem for each in lines_of_path for problem in _requirement_problems(each, path)]:
                raise InputError.of(problems)
            yield from _expanded(lines_of_path, path, files)
        elif "://" not in text and (option in _LOCAL or re.match(r"\.{0,2}/", text)):
            words = [option, value] if option in _LOCAL else [text]
            name, bracket, extras = words[-1].partition("[")
            path = (file.parent / name).absolute()
            if not path.exists():
                raise _missing(path, file, line)
            if option not in ("-f", "--find-links"):
                files.append(path)
            yield " ".join([*words[:-1], f"{path}{bracket}{extras}"])
        elif text:
            yield text


def _read(path: Path, file: Path, line: str) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    except (OSError, ValueError):
        raise _missing(path, file, line) from None


def _missing(path: Path, file: Path, line: str) -> InputError:
    return InputError(
        Problem(
            place_of(file, line), f"{line.strip()}: {shown(str(path))} cannot be read", "a file", "correct the path"
        )
    )


def place_of(file: Path, text: str) -> str:
    """Return FILE:LINE of the first line that contains a text; FILE if none does."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    number = next((number for number, line in enumerate(lines, 1) if text.strip() in line), None)
    return shown(str(file)) + (f":{number}" if number else "")


def _of_dockerfile(folder: Path, name: str) -> Packages:
    """Return the packages that the last stage of a Dockerfile installs with pip, or with conda from a file."""
    docker = dockerfile.read(folder / (name or "Dockerfile"))
    values = docker.values()
    if "DEVICE" in values and shutil.which("nvidia-smi") is None:
        values["DEVICE"] = "cpu"
    found = NOTHING
    others = 0
    for stage in needed(docker, values):
        image = dockerfile.expanded(stage.image, values)
        if python := _python_of(image):
            found = replace(found, python=python)
        elif all(image != other.name for other in docker.stages):
            found = replace(found, lacking=(*found.lacking, f"image {image}"))
        for each in stage.instructions:
            if each.name == "RUN":
                for command in re.split(r"&&|;|\|\|?", dockerfile.expanded(each.text, values)):
                    with_command = _with_command(found, command, folder, docker.path)
                    others += with_command is found
                    found = with_command
    return replace(found, lacking=(*found.lacking, f"{count(others, 'command')} of RUN")) if others else found


def _with_command(found: Packages, command: str, folder: Path, file: Path) -> Packages:
    """Return the packages together with those that a command of a Dockerfile installs; the same object if it installs
    none."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    words = [word for word in words if not word.startswith("--mount=")]
    programs = [Path(word).name for word in words[:4]]
    if "install" in words[:5] and any(re.fullmatch(r"pip[\d.]*", name) for name in programs):
        files = list(found.files)
        lines = _expanded(requirement_lines(words[words.index("install") + 1 :], folder), file, files)
        return replace(found, requirements=(*found.requirements, *lines), files=tuple(files))
    if programs[:1] == ["conda"] and "env" in words[:3] and "-f" in words:
        path = folder / Path(words[words.index("-f") + 1]).name
        own = _of_conda(yaml_lines.read_mapping(path), path)
        return Packages(
            own.python or found.python,
            (*found.requirements, *own.requirements),
            (*found.from_conda, *own.from_conda),
            True,
            (*found.files, *own.files),
            (*found.lacking, *own.lacking),
        )
    return found


_IN_FILES = (
    "-r", "--requirement", "-c", "--constraint", "-e", "--editable", "-f", "--find-links", "-i", "--index-url",
    "--extra-index-url", "--no-binary", "--only-binary", "--trusted-host",
)  # fmt: skip
"""Options of `pip install` with a value that a requirements file may have, too."""

_OF_COMMAND = ("-w", "--wheel-dir", "-t", "--target", "--prefix", "--root", "--cache-dir", "--timeout", "--retries")
"""Options with a value that it may not have."""


def requirement_lines(words: list[str], folder: Path) -> Iterator[str]:
    """Yield the arguments of `pip install` as lines of a requirements file. A file is looked up by its name in the
    build context, wherever the Dockerfile copies it to."""
    rest = iter(words)
    for word in rest:
        option, _, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if option in _IN_FILES:
            value = value or next(rest, "")
            if option in ("-r", "--requirement", "-c", "--constraint"):
                value = next((str(path.absolute()) for path in folder.rglob(Path(value).name)), value)
            yield f"{option} {value}"
        elif option in _OF_COMMAND and not value:
            next(rest, "")
        elif not word.startswith("-"):
            yield word


def host_lacks(packages: Packages) -> Iterator[str]:
    """Yield what differs between packages and the Python that runs allranks."""
    from importlib.metadata import PackageNotFoundError, version

    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.specifiers import SpecifierSet

    own = ".".join(map(str, sys.version_info[:3]))
    if packages.python and not SpecifierSet(packages.python).contains(own):
        yield f"Python {packages.python.removeprefix('==')}, not {own}"
    for line in packages.requirements:
        try:
            required = Requirement(re.split(r"\s--", line)[0])
            if required.marker is None or required.marker.evaluate():
                installed = version(required.name)
                if required.url or not required.specifier.contains(installed, prereleases=True):
                    yield f"{line}, not {installed}"
        except InvalidRequirement:
            if line[0] != "-" or line.startswith(("-c", "--constraint", "-e", "--editable")):
                yield line
        except PackageNotFoundError:
            yield line
