"""conda environments with the packages of a definition, made by micromamba, mamba or conda."""

import json
import os
import platform
import shutil
from pathlib import Path

import yaml

from allranks.images import cache
from allranks.images.cache import Report
from allranks.images.packages import Packages
from allranks.plan import digest

PROGRAMS = ("micromamba", "mamba", "conda")


def program() -> str | None:
    """Return the path of the program that MAMBA_EXE names, else of the first program on PATH."""
    names = (os.environ.get("MAMBA_EXE") or "micromamba", *PROGRAMS)
    return next((path for name in names if (path := shutil.which(name))), None)


def folder_of(definition: str, packages: Packages) -> Path:
    """Return the folder of the environment of a specification, given as JSON. It may not exist. Raise OSError if a file
    that the specification names cannot be read."""
    files = (digest.of_path(path) for path in packages.files)
    return cache.root() / f"conda-{digest.of_text(definition, platform.system(), platform.machine(), *files)[:24]}"


def specification(definition: str, packages: Packages) -> str:
    """Return a conda specification, given as JSON, as YAML without its prefix. Paths in its pip part are absolute."""
    found = {key: value for key, value in json.loads(definition).items() if key != "prefix"}
    for entry in found["dependencies"]:
        if isinstance(entry, dict):
            entry["pip"] = list(packages.requirements)
    return yaml.safe_dump(found)


def make(definition: str, packages: Packages, folder: Path, where: str, file: Path, report: Report) -> None:
    """Make the environment of a specification with the program, which must exist.

    where: the environment, for messages
    file:  the file with its definition

    Raise InputError if it cannot be made.
    """
    found, written = program() or PROGRAMS[0], folder.with_suffix(".yaml")
    written.touch(mode=0o600)
    written.write_text(specification(definition, packages), encoding="utf-8")
    verb = ["create", "--yes"] if Path(found).name == "micromamba" else ["env", "create", "--quiet"]
    try:
        code, lines = cache.run([found, *verb, "--prefix", str(folder), "--file", str(written)], report)
    finally:
        written.unlink()
    if code:
        raise cache.failed(where, file, packages, lines)
