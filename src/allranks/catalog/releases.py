"""Environments and components in the form in which they are registered: versioned, self-contained, in order of
dependency.

Each is written into a folder of its own: YAML for `az ml environment create` or `az ml component create`, with the
files that are uploaded. `allranks register` registers these folders, or copies them with `--to`.

A version is derived from content: it consists of the spec's own version and a digest, such as 1.2.0-3f9a1c2e. The
digest covers everything that is sent to Azure ML: the spec with its ports in order, and the name and bytes of every
uploaded file. A component's spec contains the version of its environment, so a new environment creates a new component.

The digest does not depend on times, modes, the order of files, comments in a spec that is not uploaded itself, or the
location of the project. It depends on line ends, because Linux may fail to start a script with CRLF: a repository that
is checked out on Windows should have `* text=auto eol=lf` in .gitattributes.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from allranks.catalog.find import components_folder, describe, environment_file, find_specs, load_all
from allranks.catalog.variants import as_yaml
from allranks.errors import InputError, Problem, Problems, raise_any
from allranks.images.find import FOLDER, REGISTERED
from allranks.sdk import internals
from allranks.sdk.compilation import component_request
from allranks.sdk.files import FileList
from allranks.sdk.paths import nearest
from allranks.sdk.session import session
from allranks.sdk.specs import load_environment
from allranks.sdk.uploads import code_of, context_of
from allranks.sdk.yaml_lines import at, read_mapping

ENVIRONMENT, COMPONENT = "environment", "component"
DIGEST = "allranks.digest"
"""The property of a registered asset with its whole digest, which is compared if the version exists."""
_DIGITS = 8
"""Digits of the digest in a version."""
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
CODE, CONTEXT = "code", "context"
"""The folders of the files, next to the YAML of a component and of an environment."""


@dataclass(frozen=True)
class Release:
    """An asset that is ready to be registered.

    kind:     ENVIRONMENT or COMPONENT
    version:  with the digest
    digest:   of all its content
    source:   its file in the project
    folder:   relative to the root of all releases
    spec:     the content of its YAML
    listed:   the files that are uploaded
    needs:    names of the environments that must be registered first
    """

    kind: str
    name: str
    version: str
    digest: str
    source: Path
    folder: Path
    spec: Mapping[str, Any]
    listed: FileList
    needs: tuple[str, ...] = ()

    @property
    def yaml(self) -> Path:
        """Its YAML, relative to the root of all releases."""
        return self.folder / f"{self.kind}.yaml"

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.version}"


def release(into: Path, root: Path | None = None, names: Sequence[str] = (), registry: str = "") -> tuple[Release, ...]:
    """Write the releases of a project into an empty folder: environments first, then components, each sorted by name.

    root:     a folder of components, or one component; default: `components` in this folder or a parent. The
              environments are those in `environments` next to it or in a parent
    names:    names or folders of the assets to release, with the environments that they need; empty: all
    registry: components refer to environments in that registry, instead of in their own workspace

    Raise InputError with everything that cannot be released, and every unknown name.
    """
    root = components_folder(Path.cwd()) if root is None else root
    with session(client=False):
        components, problems = load_all(find_specs(root))
        files = _environment_files(root, components)
        environments = [_environment(file, into, problems) for file in files]
        by_file = {environment.source.resolve(): environment for environment in environments if environment}
        chosen = _chosen(components, by_file, names, problems)
        attempted = [_component(*each, into, by_file, registry, problems) for each in chosen]
    released = [component for component in attempted if component]
    needed = {name for component in released for name in component.needs}
    selected = [
        each
        for each in by_file.values()
        if not names or each.name in needed or _is_named(each.name, each.source, names)
    ]
    problems += _duplicates([*selected, *released])
    raise_any(problems)
    for environment in by_file.values():
        if environment not in selected:
            shutil.rmtree(into / environment.folder)
    return (*sorted(selected, key=lambda each: each.name), *sorted(released, key=lambda each: each.name))


def _environment_files(root: Path, components: Sequence[tuple[Path, Any]]) -> list[Path]:
    folder = nearest(root, FOLDER, exists=Path.is_dir)
    files = sorted(folder.glob(f"*/{REGISTERED}")) if folder else []
    named = [file for _, component in components if (file := environment_file(component))]
    return list({file.resolve(): file for file in (*files, *named)}.values())


def _environment(file: Path, into: Path, problems: Problems) -> Release | None:
    with problems:
        content, context, conda = environment_spec(file)
        files = context_of(context, str(file)).below(CONTEXT) if context else FileList()
        if conda:
            files = replace(files, files={**files.files, "conda.yaml": conda})
        return _written(ENVIRONMENT, content, files, file, into)
    return None


def _component(
    spec: Path, component: Any, into: Path, environments: Mapping[Path, Release], registry: str, problems: Problems
) -> Release | None:
    file = environment_file(component)
    environment = environments.get(file.resolve()) if file else None
    if file and environment is None:
        return None  # its problems are reported already
    with problems:
        request = component_request(component)
        code = code_of(request.code, request.command, str(spec)) if request.code else None
        has_code = bool(code and code.files)
        reference = f"azureml:{environment.name}:{environment.version}" if environment else None
        content = component_spec(component, spec, has_code, reference)
        files = code.below(CODE) if code else FileList()
        return _written(COMPONENT, content, files, spec, into, environment, registry)
    return None


def _written(
    kind: str,
    content: Mapping[str, Any],
    listed: FileList,
    source: Path,
    into: Path,
    environment: Release | None = None,
    registry: str = "",
) -> Release:
    for key in ("name", "version"):
        if content.get(key) and not _WORD.fullmatch(str(content[key])):
            expected = "letters, digits, dots, hyphens and underscores"
            place = at(source, key) if source.suffix != ".py" else str(source)
            raise InputError(Problem(place, f"{key} {content[key]!r}", expected, "correct it"))
    digest = digest_of(kind, content, [(name, digest_of_file(path)) for name, path in listed.files.items()])
    version = "-".join(filter(None, (content.get("version"), digest[:_DIGITS])))
    spec = {**content, "version": version}
    if environment and registry:
        asset = f"environments/{environment.name}/versions/{environment.version}"
        spec["environment"] = f"azureml://registries/{registry}/{asset}"
    name = str(content["name"])
    folder = Path(f"{kind}s", name)
    for file, path in listed.files.items():
        target = into / folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        target.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
    needs = (environment.name,) if environment else ()
    release = Release(kind, name, version, digest, source, folder, spec, listed, needs)
    (into / folder).mkdir(parents=True, exist_ok=True)
    (into / release.yaml).write_text(as_yaml(spec), encoding="utf-8")
    return release


def digest_of(kind: str, spec: Mapping[str, Any], files: Iterable[tuple[str, str]]) -> str:
    """Return the digest of an asset, 64 hexadecimal digits.

    kind:  component or environment
    spec:  the content of its YAML, with its own version
    files: name and digest of each of its files
    """
    # The designer shows ports in their order, so a change of the order is a change.
    canonical = {key: list(spec[key].items()) for key in ("inputs", "outputs") if isinstance(spec.get(key), Mapping)}
    content = {"kind": kind, "spec": {**spec, **canonical}, "files": sorted(files)}
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def digest_of_file(path: Path) -> str:
    """Return the digest of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _chosen(
    components: list[tuple[Path, Any]],
    environments: Mapping[Path, Release],
    names: Sequence[str],
    problems: Problems,
) -> list[tuple[Path, Any]]:
    found = [(component.name, spec) for spec, component in components]
    found += [(environment.name, environment.source) for environment in environments.values()]
    for name in names:
        if not any(_is_named(own, source, (name,)) for own, source in found):
            available = ", ".join(sorted(own for own, _ in found))
            problems.append(Problem(name, "no component or environment of that name", available, "check the spelling"))
    return [each for each in components if not names or _is_named(each[1].name, each[0], names)]


def _is_named(name: str, source: Path, names: Sequence[str]) -> bool:
    """Return whether the names include an asset's name or that of its folder."""
    return name in names or source.parent.name in names


def _duplicates(releases: Sequence[Release]) -> list[Problem]:
    first: dict[tuple[str, str], Release] = {}
    problems = []
    for release in releases:
        if (other := first.setdefault((release.kind, release.name), release)) is not release:
            found = f"{release.kind} {release.name}, which {other.source} also defines"
            problems.append(Problem(str(release.source), found, "unique names", "rename one of them"))
    return problems


_KEYS = (
    "$schema", "type", "name", "version", "display_name", "description", "tags", "is_deterministic", "inputs",
    "outputs", "code", "environment", "distribution", "resources", "command",
)  # fmt: skip
_SCHEMA = "https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json"


def component_spec(component: Any, spec: Path, has_code: bool, environment: str | None) -> dict[str, Any]:
    """Return the content of a component's YAML, with the version of its spec.

    has_code:    whether its code is next to it
    environment: replaces an environment's file in the spec, as azureml:NAME:VERSION; None if the spec names no file

    Raise InputError for a kind of component that cannot be registered by itself.
    """
    if component.type != "command":
        found = f"a component of type {component.type}"
        fix = "register it with: az ml component create"
        raise InputError(Problem(str(spec), found, "a command component", fix))
    content = _of_function(component, spec) if spec.suffix == ".py" else read_mapping(spec)
    content.pop("additional_includes", None)
    content["version"] = str(component.version or "")
    if has_code:
        content["code"] = "./code"
    if environment:
        content["environment"] = environment
    elif not isinstance(component.environment, str) and component.environment is not None:
        content["environment"] = _inline(component.environment, spec)
    return content


def environment_spec(file: Path) -> tuple[dict[str, Any], Path | None, Path | None]:
    """Return the content of an environment's YAML, its build context, and its conda file.

    Raise InputError if azure-ai-ml does not load it, or if it has no name.
    """
    content = read_mapping(file)
    load_environment(file)
    content["version"] = str(content.get("version") or "")
    build, conda = content.get("build"), content.get("conda_file")
    context = None
    if isinstance(build, dict) and "://" not in str(build.get("path")):
        context = (file.parent / str(build.get("path"))).resolve()
        content["build"] = {**build, "path": "./context"}
    if isinstance(conda, str):
        content["conda_file"] = "./conda.yaml"
    return content, context, file.parent / conda if isinstance(conda, str) else None


def _of_function(component: Any, spec: Path) -> dict[str, Any]:
    """Return the spec of a component that Python declares, with numbers as numbers: the SDK stores some as strings."""
    sent = internals.as_dict(component)
    ports = {port.name: port for port in describe(component, spec).inputs}
    inputs = {}
    for name, port in (sent.get("inputs") or {}).items():
        typed = {"default": ports[name].default, "min": ports[name].minimum, "max": ports[name].maximum}
        if port.get("type") == "integer":
            typed |= {key: int(value) for key, value in typed.items() if value is not None}
        inputs[name] = {key: typed.get(key, value) for key, value in port.items()}
    content = {"$schema": _SCHEMA, **sent, "inputs": inputs}
    return {key: content[key] for key in (*_KEYS, *content) if key in content and (content[key] or key != "inputs")}


def _inline(environment: Any, spec: Path) -> dict[str, Any]:
    if environment.build is not None:
        found = "an environment within it, with a build context"
        fix = f"write an {REGISTERED} with a name next to the Dockerfile, and refer to it: environment: file:PATH"
        raise InputError(Problem(str(spec), found, "an environment with a name", fix))
    content: dict[str, Any] = {"image": environment.image}
    if environment.conda_file:
        content["conda_file"] = environment.conda_file
    return content
