"""Write the generated parts of environments: the variant, the base's block of Dockerfiles, the copies of setup_mpi.sh,
the labels of environment.yaml.
A project's table of variants has the CUDA releases that its environments can be built with.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from allranks.errors import InputError, Problem
from allranks.images import dockerfile as parts
from allranks.images.dockerfile import SETUP_MPI, VERSION, Dockerfile, labels_of, read
from allranks.images.find import BASE, DOCKERFILE, EXPECTED, REGISTERED, EnvironmentFolder, read_environment
from allranks.sdk.yaml_lines import at, read_mapping

TABLE = "variants.yaml"
"""The table in the folder of all environments."""

LIBRARIES, DEVICE = "libraries-cuda.txt", "device-cuda.txt"
BEGIN, END = "# >>> variant", "# <<< variant"
"""The lines around the part of libraries-cuda.txt that comes from a variant. An environment's own packages follow."""


@dataclass(frozen=True)
class CudaVariant:
    """One CUDA release.

    name:    as in the table: cuda12
    default: whether environments are registered with it under their plain version
    base:    rows of the version table in the base's block
    torch:   rows of the version table of environments with torch
    pins:    the folder with device-cuda.txt and libraries-cuda.txt
    """

    name: str
    default: bool
    base: Mapping[str, str]
    torch: Mapping[str, str]
    pins: Path


def read_variants(root: Path) -> tuple[CudaVariant, ...]:
    """Return the variants of the environments in root, in the table's order.

    Raise InputError if the table is missing or malformed.
    """
    path = root / TABLE
    table = read_mapping(path, "write it: see docs/environments.md")
    default, variants = table.get("default"), table.get("variants")
    if not isinstance(variants, dict) or default not in variants:
        expected = "the keys default, and variants: names with base, torch and pins; default is one of the names"
        raise InputError(Problem(str(path), f"keys {', '.join(map(str, table))}", expected, "correct it"))
    return tuple(_variant(path, name, each, name == default) for name, each in variants.items())


def find_variant(root: Path, name: str) -> CudaVariant:
    """Return the variant of that name. Raise InputError if there is none."""
    variants = read_variants(root)
    for variant in variants:
        if variant.name == name:
            return variant
    known = ", ".join(variant.name for variant in variants)
    raise InputError(
        Problem(f"--variant {name}", f"{root / TABLE} has no variant {name!r}", known, "name one of those")
    )


def write(variant: CudaVariant, environment: EnvironmentFolder, names: tuple[str, ...]) -> tuple[Path, ...]:
    """Write a variant into an environment's folder. Return the files that changed.

    names: of all variants, one of which may be in the registered version

    An environment without the base's block keeps its CUDA. The base's own rows reach the others by `sync`.
    """
    if parts.block(environment.dockerfile.lines) is None:
        return ()
    with_torch = environment.file(LIBRARIES).is_file()
    rows = dict(variant.base) if environment.name == BASE else {}
    rows |= variant.torch if with_torch else {}
    version = environment.dockerfile.values().get(VERSION, "")
    rows[VERSION] = re.sub(rf"-(?:{'|'.join(map(re.escape, names))})$", "", version)
    if not variant.default:
        rows[VERSION] += f"-{variant.name}"
    texts = {
        DOCKERFILE: with_rows(environment.file(DOCKERFILE).read_text(encoding="utf-8"), rows),
        EXPECTED: with_expected(
            environment.file(EXPECTED).read_text(encoding="utf-8"), variant.torch, with_torch=with_torch
        ),
    }
    if with_torch:
        own = environment.file(LIBRARIES).read_text(encoding="utf-8")
        texts[LIBRARIES] = with_libraries(own, (variant.pins / LIBRARIES).read_text(encoding="utf-8"))
        texts[DEVICE] = (variant.pins / DEVICE).read_text(encoding="utf-8")
    changed = [name for name, text in texts.items() if environment.file(name).read_text(encoding="utf-8") != text]
    for name in changed:
        environment.file(name).write_text(texts[name], encoding="utf-8")
    return tuple(environment.file(name) for name in changed)


def with_rows(text: str, rows: Mapping[str, str]) -> str:
    """Return a Dockerfile's text with the values of the rows that its version table has."""
    for name, value in rows.items():
        text = re.sub(rf"^ARG {name}=.*$", lambda _, row=f"ARG {name}={value}": row, text, flags=re.MULTILINE)  # type: ignore[misc]
    return text


def with_expected(text: str, torch: Mapping[str, str], *, with_torch: bool) -> str:
    """Return the text of expect.yaml for the variant's versions.

    with_torch: whether the environment has torch, whose CUDA is the variant's; TensorFlow brings its own
    """
    cuda, nccl = torch["CUDA_VERSION"], torch["NCCL_VERSION"]
    if with_torch:
        text = re.sub(r'(torch: \{cuda: )"[^"]*"(, nccl: )"[^"]*"', rf'\g<1>"{cuda}"\g<2>"{nccl}"', text)
    return re.sub(r"libcudart\.so\.\d+", f"libcudart.so.{cuda.partition('.')[0]}", text)


def with_libraries(own: str, libraries: str) -> str:
    """Return the text of libraries-cuda.txt with the variant's libraries between its marker lines."""
    begin, _, rest = own.partition("\n")
    _, _, after = rest.partition(f"{END}\n")
    return f"{begin}\n{libraries}{END}\n{after}"


def _variant(path: Path, name: str, content: object, default: bool) -> CudaVariant:
    if not isinstance(content, dict) or not all(
        isinstance(content.get(key), dict) and all(isinstance(value, str) for value in content[key].values())
        for key in ("base", "torch")
    ):
        expected = 'base and torch, each with rows NAME: "value", and pins: a folder'
        raise InputError(Problem(at(path, "variants", name), f"variant {name}", expected, "correct it"))
    pins = path.parent / str(content.get("pins"))
    missing = [file for file in (DEVICE, LIBRARIES) if not (pins / file).is_file()]
    if missing:
        found = f"{pins} has no {', '.join(missing)}"
        raise InputError(
            Problem(at(path, "variants", name, "pins"), found, "the pinned packages", "environments/lock.sh")
        )
    return CudaVariant(name, default, content["base"], content["torch"], pins)


_GENERATED = "# Version, description and tags come from the Dockerfile's table: allranks environments sync"


def sync(environments: Sequence[EnvironmentFolder], root: Path, variant: str | None = None) -> tuple[Path, ...]:
    """Write the files that are out of date, and return them.

    root:    the folder of all environments, with the base in it
    variant: the CUDA release to build them with; by default the one that they have

    Raise InputError if the table of variants has no such one.
    """
    written: list[Path] = []
    if variant is not None:
        chosen = find_variant(root, variant)
        names = tuple(each.name for each in read_variants(root))
        for environment in environments:
            written += write(chosen, environment, names)
        environments = [read_environment(environment.folder) for environment in environments]
    for environment in environments:
        path = environment.file(DOCKERFILE)
        if parts.block(environment.dockerfile.lines) and environment.name != BASE:
            written += _write(path, parts.with_block(environment.dockerfile, read(root / BASE / DOCKERFILE)))
        if parts.runs_setup_mpi(read(path)):
            written += _write_program(environment.file(SETUP_MPI.name))
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
    text = SETUP_MPI.read_text(encoding="utf-8")
    if path.exists() and path.read_text(encoding="utf-8") == text and os.access(path, os.X_OK):
        return []
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return [path]
