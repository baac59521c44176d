"""Build an environment's image on this machine."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from allranks.environments.engines import Engine, build_command, has_cache_mounts
from allranks.environments.find import EnvironmentFolder
from allranks.environments.render import rendered
from allranks.errors import InputError, Problem


@dataclass(frozen=True)
class Variant:
    """The variant of an image to build.

    base_image: the image to start from; None: that of the table
    device:     cpu or cuda
    ofed:       distribution or doca
    """

    base_image: str | None = None
    device: str = "cuda"
    ofed: str = "doca"

    def arguments(self) -> dict[str, str]:
        """Return values for the rows of the table that the variant sets."""
        values = {"DEVICE": self.device, "OFED": self.ofed}
        return {**values, "BASE_IMAGE": self.base_image} if self.base_image else values


def variant_for(base_image: str | None, device: str | None, ofed: str | None) -> Variant:
    """Return the variant for a user's options. With a base image the defaults are CPUs and that image's rdma-core."""
    own = base_image is not None
    return Variant(base_image, device or ("cpu" if own else "cuda"), ofed or ("distribution" if own else "doca"))


def build(
    environment: EnvironmentFolder,
    engine: Engine,
    tag: str,
    variant: Variant,
    arguments: Mapping[str, str],
    options: Sequence[str] = (),
) -> int:
    """Build the image, and return the engine's exit code. The engine prints to this process's streams.

    arguments: values for further rows of the version table
    options:   passed to the engine unchanged

    Raise InputError if the table has no row of that name.
    """
    table = environment.dockerfile.values()
    unknown = sorted(arguments.keys() - table.keys())
    if unknown:
        where = f"{environment.dockerfile.path}"
        raise InputError(Problem(where, f"no ARG {', '.join(unknown)}", ", ".join(table), "name one of those"))
    values = {name: value for name, value in variant.arguments().items() if name in table} | dict(arguments)
    with tempfile.TemporaryDirectory(prefix="allranks-") as folder:
        file = Path(folder, "Dockerfile")
        file.write_text(rendered(environment.dockerfile, values, has_cache_mounts(engine)), encoding="utf-8")
        command = build_command(engine, environment.folder, file, tag, values, options)
        return subprocess.run(command, check=False).returncode
