"""Write the generated parts of environments: the variant, the base's block of Dockerfiles, the copies of setup_mpi.sh,
the labels of environment.yaml."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import yaml

from allranks.environments import base_block, cuda_variants
from allranks.environments.dockerfile import Dockerfile, read
from allranks.environments.find import BASE, DOCKERFILE, REGISTERED, EnvironmentFolder, read_environment
from allranks.environments.labels import labels_of

_GENERATED = "# Version, description and tags come from the Dockerfile's table: allranks environments sync"


def sync(environments: Sequence[EnvironmentFolder], root: Path, variant: str | None = None) -> tuple[Path, ...]:
    """Write the files that are out of date, and return them.

    root:    the folder of all environments, with the base in it
    variant: the CUDA release to build them with; by default the one that they have

    Raise InputError if the table of variants has no such one.
    """
    written: list[Path] = []
    if variant is not None:
        chosen = cuda_variants.find_variant(root, variant)
        names = tuple(each.name for each in cuda_variants.read_variants(root))
        for environment in environments:
            written += cuda_variants.write(chosen, environment, names)
        environments = [read_environment(environment.folder) for environment in environments]
    for environment in environments:
        path = environment.file(DOCKERFILE)
        if base_block.block(environment.dockerfile.lines) and environment.name != BASE:
            written += _write(path, base_block.with_block(environment.dockerfile, read(root / BASE / DOCKERFILE)))
        if base_block.runs_setup_mpi(read(path)):
            written += _write_program(environment.file(base_block.SETUP_MPI.name))
        registered = environment.file(REGISTERED)
        written += _write(registered, registered_text(registered.read_text(encoding="utf-8"), read(path)))
    return tuple(dict.fromkeys(written))


def registered_text(text: str, dockerfile: Dockerfile) -> str:
    """Return environment.yaml's text with the labels that follow from the Dockerfile; its other keys stay."""
    labels = labels_of(dockerfile)
    rest = re.sub(r"^(version|description|tags):.*\n(?:[ \t]+.*\n)*", "", text, flags=re.MULTILINE)
    rest = "".join(line for line in rest.splitlines(keepends=True) if line.strip() != _GENERATED)
    tags = {name: _Quoted(value) for name, value in labels.tags.items()}
    label_keys = {"version": _Quoted(labels.version), "description": labels.description, "tags": tags}
    generated = yaml.dump(label_keys, Dumper=_Dumper, sort_keys=False, width=118, allow_unicode=True)
    return f"{rest.rstrip()}\n{_GENERATED}\n{generated}"


class _Quoted(str):
    """A version, written in quotes: Azure ML requires text, and YAML reads an unquoted version as a number."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(
    _Quoted, lambda dumper, value: dumper.represent_scalar("tag:yaml.org,2002:str", str(value), style='"')
)


def _write(path: Path, text: str) -> list[Path]:
    if path.read_text(encoding="utf-8") == text:
        return []
    path.write_text(text, encoding="utf-8")
    return [path]


def _write_program(path: Path) -> list[Path]:
    text = base_block.SETUP_MPI.read_text(encoding="utf-8")
    if path.exists() and path.read_text(encoding="utf-8") == text and os.access(path, os.X_OK):
        return []
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return [path]
