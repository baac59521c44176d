"""The packages that an environment's definition installs: of a conda file, a requirements file, or a Dockerfile."""

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from string import Template
from typing import Any

from allranks.errors import InputError, Problem, raise_any
from allranks.images.build import arguments_of
from allranks.plan.environment import Environment
from allranks.sdk import yaml_lines
from allranks.sdk.paths import shown
from allranks.sdk.uploads import DOCKERFILE, dockerfile_text
from allranks.text import count

_IMAGE = re.compile(r"(?:.*/)?python(?::(?:(?P<version>3\.\d+)\b.*|(?!2).*))?")
_CONDA_NAME = re.compile(r"(?:\S+::)?(?P<name>[\w.-]+)\s*(?P<version>.*)")


@dataclass(frozen=True)
class Packages:
    """The packages that an environment installs.

    python:         versions of Python as in PEP 440, such as ==3.9.*; "" if the definition names none
    requirements:   lines of a requirements file, in order
    conda_packages: packages that only conda installs, as the definition names them
    with_conda:     whether conda makes the environment
    files:          files of the user whose content is installed
    unused:         parts of the definition that pip does not install: an image, commands of a Dockerfile
    """

    python: str = ""
    requirements: tuple[str, ...] = ()
    conda_packages: tuple[str, ...] = ()
    with_conda: bool = False
    files: tuple[Path, ...] = ()
    unused: tuple[str, ...] = ()


def of(environment: Environment) -> Packages | None:
    """Return the packages of an environment; None if its definition is not on this machine, or only names an image.

    Raise InputError for a definition that cannot be read.
    """
    if environment.definition:
        found = _of_conda(json.loads(environment.definition), Path(environment.file))
        image = environment.image
        return replace(found, unused=(f"image {image}",)) if image and not _python_of(image) else found
    if environment.folder:
        return _of_dockerfile(Path(environment.folder), environment.dockerfile or DOCKERFILE)
    if _IMAGE.fullmatch(environment.image) is None:
        return None
    python = _python_of(environment.image)
    return Packages(python, unused=() if python else (f"image {environment.image}",))


def _python_of(image: str) -> str:
    """Return the version of Python of an official image python:3.N; "" for another image."""
    match = _IMAGE.fullmatch(image)
    return f"=={match['version']}.*" if match and match["version"] else ""


def conda_problems(specification: object, file: Path) -> Iterator[Problem]:
    """Yield the problems of a conda specification, without those of the requirements files that it names.

    file: the file that contains it
    """
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
"""Names on PyPI that install nothing, with the package that was meant."""


def _requirement_problems(line: str, file: Path) -> Iterator[Problem]:
    """Yield the reason why pip does not install a line of a requirements file."""
    from packaging.requirements import InvalidRequirement, Requirement  # take 0.03 s to import

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
    """Return the packages of a conda specification. file: contains it, for messages and relative paths"""
    raise_any(conda_problems(specification, file))
    python, conda_packages, pip, files = "", list[str](), list[str](), list[Path]()
    for entry in specification["dependencies"]:
        if isinstance(entry, dict):
            pip += map(str, entry.get("pip") or ())
            continue
        match = _CONDA_NAME.fullmatch(entry.strip())
        name = match["name"].lower() if match else ""
        if match and name == "python":
            python = _python_versions(match["version"])
        elif name not in ("pip", "conda"):
            conda_packages.append(entry)
    requirements = tuple(_expanded(pip, file, files))
    return Packages(python, requirements, tuple(conda_packages), True, tuple(files))


def _python_versions(condas: str) -> str:
    """Return versions of Python in conda's notation as in PEP 440, without the patch version, which saves downloads."""
    if exact := re.match(r"=*\s*(\d+(?:\.\d+)?)", condas):
        return f"=={exact[1]}.*"
    return condas.replace(" ", "") if re.fullmatch(r"[<>=!~\d.,*\s]+", condas) else ""


_FILE, _LOCAL = ("-r", "--requirement"), ("-c", "--constraint", "-e", "--editable", "-f", "--find-links")
"""Options whose value is a requirements file, and options whose value may be a path."""


def _expanded(lines: Iterable[str], file: Path, files: list[Path]) -> Iterator[str]:
    """Yield the lines of a requirements file with absolute paths, and the lines of files that it names in place of -r.

    file:  contains the lines
    files: receives the files and folders that the lines name
    """
    for line in lines:
        text = " ".join(re.split(r"(?:^|\s)#", line, maxsplit=1)[0].split())
        option, _, value = re.sub(r"^(-[rcef]|--\w[\w-]*)[\s=]+", r"\1 ", text).partition(" ")
        words = [option, value] if option in _LOCAL else [text]
        name, bracket, extras = words[-1].partition("[")
        path = (file.parent / (value if option in _FILE else name)).absolute()
        try:
            if option in _FILE:
                own = path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
                raise_any(problem for each in own for problem in _requirement_problems(each, path))
                yield from _expanded(own, path, files)
            elif "://" not in text and (option in _LOCAL or re.match(r"\.{0,2}/", text)):
                path.stat()
                files += [] if option in ("-f", "--find-links") else [path]
                yield " ".join([*words[:-1], f"{path}{bracket}{extras}"])
            elif text:
                yield text
        except (OSError, ValueError):
            found = f"{line.strip()}: {shown(path)} cannot be read"
            raise InputError(Problem(place_of(file, line), found, "a file", "correct the path")) from None


def place_of(file: Path, text: str) -> str:
    """Return FILE:LINE of the first line that contains a text; FILE if none does."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    number = next((number for number, line in enumerate(lines, 1) if text.strip() in line), None)
    return shown(str(file)) + (f":{number}" if number else "")


_INSTRUCTION = re.compile(r"^(FROM|RUN) (.*)", re.MULTILINE | re.IGNORECASE)
_PIP = re.compile(r"(?:^|[\s/])pip[\d.]*(?: -\S+)* install (.*)")
_CONDA = re.compile(r"(?:^|[\s/])(?:conda|mamba|micromamba) .*(?:-f|--file)[ =](\S+)")


def _of_dockerfile(folder: Path, name: str) -> Packages:
    """Return the packages that the commands of a Dockerfile install with pip, or with conda from a file."""
    text = re.sub(r"^\s*#.*\n", "", dockerfile_text(folder / name), flags=re.MULTILINE).replace("\\\n", " ")
    values = arguments_of(text)
    if "DEVICE" in values and shutil.which("nvidia-smi") is None:
        values["DEVICE"] = "cpu"
    conda, python, requirements, files = Packages(), "", list[str](), list[Path]()
    stages, images, others = set[str](), list[str](), 0
    for instruction, words in _INSTRUCTION.findall(Template(text).safe_substitute(values)):
        if instruction.upper() == "FROM":
            image, *more = (*(word for word in words.split() if not word.startswith("--")), "")
            python = _python_of(image) or python
            images += [] if image in stages or _python_of(image) else [f"image {image}"]
            stages |= set(more[1:])
            continue
        for command in re.split(r"&&|;|\|\|?", words):
            pip = _PIP.search(" ".join(command.split()))
            if lines := list(_requirement_lines(pip[1], folder)) if pip else []:
                requirements += _expanded(lines, folder / name, files)
            elif file := _CONDA.search(command):
                path = folder / Path(file[1]).name
                conda = _of_conda(yaml_lines.read_mapping(path), path)
                python = conda.python or python
                requirements += conda.requirements
                files += conda.files
            else:
                others += 1
    unused = (*images, *([f"{count(others, 'command')} of RUN"] if others else ()))
    once = tuple(dict.fromkeys(requirements))  # several stages may install the same packages
    return replace(conda, python=python, requirements=once, files=tuple(files), unused=unused)


_WITH_VALUE = re.compile(
    r"-[rcefi]|--(?:requirement|constraint|editable|find-links|(?:extra-)?index-url|no-binary|"
    r"only-binary|trusted-host)"
)
_OF_COMMAND = re.compile(r"-[tw]|--(?:wheel-dir|target|prefix|root|cache-dir|timeout|retries)")
"""Options of `pip install` with a value: those that a requirements file may have too, and the others."""


def _requirement_lines(arguments: str, folder: Path) -> Iterator[str]:
    """Yield the arguments of `pip install` as lines of a requirements file. A file is looked up by its name in the
    build context. Packages at absolute paths are omitted, because only the image has them."""
    try:
        rest = iter(shlex.split(arguments))
    except ValueError:
        rest = iter(arguments.split())
    for word in rest:
        option, _, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if _WITH_VALUE.fullmatch(option):
            value = value or next(rest, "")
            if option in (*_FILE, "-c", "--constraint"):
                value = next((str(path.absolute()) for path in folder.rglob(Path(value).name)), value)
            yield f"{option} {value}"
        elif _OF_COMMAND.fullmatch(option) and not value:
            next(rest, "")
        elif not word.startswith(("-", "/")):
            yield word


def host_lacks(packages: Packages) -> Iterator[str]:
    """Yield the differences between packages and those of the Python that runs allranks."""
    # These take 0.04 s to import, and most runs use the packages of this Python without a check.
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
