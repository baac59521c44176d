"""The environment of a step: the contents of its image, or its registered name, and the packages that it pins."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import yaml

from allranks.contract.requirements import normal
from allranks.errors import InputError
from allranks.hardware.sizes import RELEASES
from allranks.sdk import bounded_yaml
from allranks.sdk.uploads import DOCKERFILE, dockerfile_text

_NAME = re.compile(r"(?:azureml:)?(?P<name>[^:@/]+)(?::(?P<version>[^:@/]+)|@(?P<label>[^:@/]+))?")
_REGISTRY = re.compile(
    r"azureml://registries/(?P<registry>[^/]+)/environments/(?P<name>[^/]+)"
    r"(?:/versions/(?P<version>[^/]+)|/labels/(?P<label>[^/]+))?"
)


@dataclass(frozen=True)
class Environment:
    """The environment of a step's processes. A field is empty if the step does not set it.

    name:       the name of the environment, registered or in its own file
    version:    its version or label (``3``, ``@latest``)
    registry:   the registry that it is registered in; empty for the workspace
    image:      the base image
    conda:      the digest of its conda specification
    context:    the digest of its build context, or the context's URI
    dockerfile: the path of the Dockerfile within the context

    interpreter: the Python on this machine that ``allranks.yaml`` maps it to, or that was created for it
    folder:      the build context on this machine
    definition:  the conda specification as JSON
    file:        the file that contains the definition
    realised:    a name of `REALISED`; "" for the run's option
    """

    name: str = ""
    version: str = ""
    registry: str = ""
    image: str = ""
    conda: str = ""
    context: str = ""
    dockerfile: str = ""
    interpreter: str = field(default="", compare=False)
    folder: str = field(default="", compare=False)
    definition: str = field(default="", compare=False, repr=False)
    file: str = field(default="", compare=False)
    realised: str = field(default="", compare=False)

    def __bool__(self) -> bool:
        return self != NO_ENVIRONMENT

    def __str__(self) -> str:
        """Return ``azureml:torch:3`` for a registered environment, ``torch:3, image python:3.12, conda 1f0c...`` for a
        defined one, "" for none."""
        parts = []
        if self.name and not self.registry and not (self.image or self.conda or self.context):
            return f"azureml:{self.name}{self._version}"
        if self.name:
            name = f"azureml://registries/{self.registry}/environments/{self.name}" if self.registry else self.name
            parts.append(f"{name}{self._version}")
        if self.image:
            parts.append(f"image {self.image}")
        if self.conda:
            parts.append(f"conda {self.conda}")
        if self.context:
            parts.append(f"build {self.context} {self.dockerfile}".rstrip())
        return ", ".join(parts)

    @property
    def _version(self) -> str:
        return self.version if not self.version or self.version.startswith("@") else f":{self.version}"


REALISED = ("auto", "host", "venv", "conda", "container")
"""Ways to realise an environment on this machine. host: by this machine's Python."""

NO_ENVIRONMENT = Environment()
"""The environment of a step that names none."""


def registered(identity: str) -> Environment:
    """Return a registered environment by its id: ``azureml:torch:3``, ``torch@latest``, or a registry's URI."""
    match = _REGISTRY.fullmatch(identity) or _NAME.fullmatch(identity)
    if match is None:
        return Environment(name=identity)
    parts = match.groupdict()
    version = parts["version"] or (f"@{parts['label']}" if parts["label"] else "")
    return Environment(name=parts["name"], version=version, registry=parts.get("registry") or "")


_ROW = re.compile(r"^ARG CUDA_VERSION=[\"']?(\d+(?:\.\d+)?)", re.MULTILINE)
_CUDA = re.compile(r"cuda[:-]?(\d+)\.(\d+)|\bcu(\d\d)(\d)\b")
_IMAGE = re.compile(r"^(?:FROM\s+|ARG BASE_IMAGE=)(\S+)", re.MULTILINE)


def cuda_version(environment: Environment) -> str:
    """Return the CUDA version, such as "12.6"; "" if it is unknown or the environment has no CUDA.

    For a build context on this machine, it is the row CUDA_VERSION of the Dockerfile, else in the tag of a base image.
    For others, it is in the name of the image or the environment: `acpt-pytorch-2.8-cuda12.6`.
    """
    if environment.folder:
        try:
            text = dockerfile_text(Path(environment.folder, environment.dockerfile or DOCKERFILE))
        except InputError:
            return ""
        row = _ROW.search(text)
        return row[1] if row else next(filter(None, map(_cuda_in, _IMAGE.findall(text))), "")
    for release in RELEASES:
        if environment.version.endswith(f"-{release.name}"):
            return release.version
    return _cuda_in(environment.image) or _cuda_in(environment.name)


def _cuda_in(text: str) -> str:
    match = _CUDA.search(text.lower())
    return ".".join(filter(None, match.groups())) if match else ""


PINNED, EXPECTED = "requirements.txt", "expect.yaml"
"""The lock file of an environment, and its expectations, which together name all its packages."""

_PINNED_NAME = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)", re.MULTILINE)


def packages(folder: str) -> frozenset[str] | None:
    """Return the normalized names of all packages of an environment, on CPUs or GPUs; None if they are unknown.

    They are known if the folder contains a lock file and the expectations of `allranks environments verify`.
    """
    try:
        stamps = tuple(Path(folder, name).stat().st_mtime_ns for name in (PINNED, EXPECTED)) if folder else ()
        return _packages(folder, stamps) if stamps else None
    except (OSError, ValueError, yaml.YAMLError):
        return None


@lru_cache(maxsize=64)
def _packages(folder: str, _stamps: tuple[int, ...]) -> frozenset[str]:
    expected = bounded_yaml.load_file(Path(folder, EXPECTED))
    sections = expected.values() if isinstance(expected, dict) else ()
    # Packages that the build compiles, such as Horovod, are not in the lock file.
    proved = {name for probes in sections if isinstance(probes, dict) for name in probes.get("packages") or ()}
    files = (file for kind in ("requirements*", "device-*", "libraries-*") for file in Path(folder).glob(f"{kind}.txt"))
    pinned = {name for file in files for name in _PINNED_NAME.findall(file.read_text(encoding="utf-8"))}
    return frozenset(normal(str(name)) for name in {*pinned, *proved})
