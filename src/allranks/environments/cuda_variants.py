"""The CUDA releases that a project's environments can be built with, and how to write one into their folders."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from allranks.environments import base_block
from allranks.environments.find import BASE, DOCKERFILE, EXPECTED, EnvironmentFolder
from allranks.environments.labels import VERSION
from allranks.errors import InputError, Problem
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
    if base_block.block(environment.dockerfile.lines) is None:
        return ()
    with_torch = environment.file(LIBRARIES).is_file()
    rows = dict(variant.base) if environment.name == BASE else {}
    rows |= variant.torch if with_torch else {}
    version = environment.dockerfile.value(VERSION) or ""
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
