"""The environments of this project: complete, pinned, with the versions that they state, each shared text once."""

import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from azure.ai.ml import load_environment

from allranks.checks.environment import check_files
from allranks.contract.requirements import normal
from allranks.images.build import ON_CPU, arguments_of, copy_context
from allranks.images.find import EnvironmentFolder, find_environments
from allranks.sdk.uploads import context_of

OURS = Path(__file__).parents[2] / "environments"
ENVIRONMENTS = {each.name: each for each in find_environments(OURS)}
FROM = re.compile(r"^FROM (\S+) AS (\S+)$", re.MULTILINE)
PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*(?:==\s*([^\s;\\]+))?(.*)$")
GENERAL = ("python", "openmpi", "ucx", "ofed", "doca", "cuda", "nccl", "base-image", "horovod")
"""What the images have that no file pins as a package of this name."""


@pytest.fixture(params=ENVIRONMENTS)
def ours(request: pytest.FixtureRequest) -> EnvironmentFolder:
    return ENVIRONMENTS[request.param]


def texts(environment: EnvironmentFolder) -> dict[str, str]:
    """The files as they are uploaded."""
    return {name: path.read_text() for name, path in context_of(environment.folder).files.items()}


def pins(files: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The pinned packages of each file: their versions, or what is wrong with the line."""
    found: dict[str, dict[str, str]] = {}
    for name, text in files.items():
        if not re.fullmatch(r"(requirements|device-.*|libraries-.*)\.txt", name):
            continue
        own_index = "index-url" in text  # PyTorch's has no checksums
        for line in re.sub(r"\\\n", " ", re.sub(r"\s*#.*", "", text)).splitlines():
            if match := PIN.match(line):
                pinned = match[2] and (own_index or "--hash=" in match[3])
                found.setdefault(name, {})[normal(match[1])] = match[2].partition("+")[0] if pinned else f"not: {line}"
    return found


def test_none_has_a_finding() -> None:
    files, findings = check_files(OURS)
    assert [file.parent.name for file in files] == list(ENVIRONMENTS)
    assert findings.found == ()


def test_each_text_is_once_in_git() -> None:
    listed = subprocess.run(["git", "ls-files", "-s", "."], cwd=OURS, capture_output=True, text=True, check=True)
    files = [line.split() for line in listed.stdout.splitlines()]
    assert [
        blob for blob, count in Counter(each[1] for each in files if each[0] != "120000").items() if count > 1
    ] == []
    assert all((OURS / each[3]).is_file() for each in files)


def test_the_context_has_what_the_dockerfile_names(ours: EnvironmentFolder) -> None:
    files = texts(ours)
    dockerfile = files["Dockerfile"]
    assert "# allranks: include" not in dockerfile
    for copied in re.findall(r"^COPY (?!--from)(.*)", dockerfile.replace("\\\n", " "), re.MULTILINE):
        assert {*copied.split()[:-1]} <= files.keys()


def test_without_gpus_nothing_of_nvidia_is_needed(ours: EnvironmentFolder, tmp_path: Path) -> None:
    """Each can be made from a Debian alone; for GPUs, from its two images."""
    options = copy_context(ours.folder, tmp_path, "Dockerfile", {**ON_CPU, "BASE_IMAGE": "debian:12"})
    assert "--build-arg=BASE_IMAGE=debian:12" in options
    text = (tmp_path / "Dockerfile").read_text()
    sources = {stage: image for image, stage in FROM.findall(text)}
    blocks = {
        match[2]: match[0] for match in re.finditer(r"^FROM (\S+) AS (\S+)\n[^\0]*?(?=^FROM |\Z)", text, re.MULTILINE)
    }
    needed, images = [list(sources)[-1]], set[str]()
    for stage in needed:
        more = [sources[stage], *re.findall(r"--from=(\S+)", blocks[stage])]
        needed += [each for each in more if each in sources and each not in needed]
        images |= {each for each in more if each not in sources}
    assert images == {"debian:12"}
    table = arguments_of(context_of(ours.folder).files["Dockerfile"].read_text())
    assert {image for image in sources.values() if image not in sources} <= {"debian:12", table.get("DEVEL_IMAGE")}


def test_every_package_is_pinned(ours: EnvironmentFolder) -> None:
    found = pins(texts(ours))
    assert "requirements.txt" in found
    wrong = [version for versions in found.values() for version in versions.values() if version.startswith("not: ")]
    assert wrong == []


def test_every_download_is_compared(ours: EnvironmentFolder) -> None:
    dockerfile = re.sub(r"\\\n(?:\s*#.*\n)*", " ", texts(ours)["Dockerfile"])
    for command in re.findall(r"^RUN (.*)", dockerfile, re.MULTILINE):
        assert "curl --" not in command or "sha256sum --check" in command
        assert "git fetch" not in command or "_COMMIT}" in command
    table = arguments_of(dockerfile)
    assert all(re.fullmatch(r"[0-9a-f]{40}", value) for name, value in table.items() if name.endswith("_COMMIT"))


def stated(value: Any, name: str = "") -> list[tuple[str, str]]:
    """The versions in a part of expect.yaml, with the names of what has them."""
    if isinstance(value, dict):
        keys = {"version": name, "cuda_version": "cuda", "nccl_version": "nccl"}
        return [pair for key, each in value.items() for pair in stated(each, keys.get(key, key))]
    return [(name, value)] if isinstance(value, str) and re.fullmatch(r"[\d.]+\w*", value) else []


def test_the_stated_versions_are_those_that_are_installed(ours: EnvironmentFolder) -> None:
    files = texts(ours)
    pinned = {name: version for versions in pins(files).values() for name, version in versions.items()}
    arguments = arguments_of(files["Dockerfile"])
    tags = dict(ours.registered["tags"])
    expected = [pair for section, probes in ours.expectations().items() if section != "tags" for pair in stated(probes)]
    assert expected
    assert tags["base-image"] == arguments["BASE_IMAGE"]
    assert {name for name in tags if name not in GENERAL} <= pinned.keys() | {"horovod"}
    for name, version in [*tags.items(), *expected]:
        assert pinned.get(normal(name), version) == version, name
        row = arguments.get(f"{name.upper()}_VERSION", version)
        assert version == row or version.startswith(f"{row}."), name
    by_library = {name: version for name, version in pinned.items() if name.startswith("nvidia-nccl-cu")}
    assert {tags["nccl"]} == {*by_library.values()} if "nccl" in tags else not by_library
    for name, version in expected:
        if name in ("nccl", "ofed", "doca"):
            assert tags.get(name, version) == version


def test_azure_ml_loads_it_as_it_stands(ours: EnvironmentFolder) -> None:
    loaded = load_environment(ours.folder / "environment.yaml")
    assert loaded.name == f"allranks-{ours.name}"
    assert re.fullmatch(r"\d+\.\d+\.\d+", loaded.version)
    assert loaded.description
    assert Path(loaded.base_path, loaded.build.path).resolve() == ours.folder
    assert (loaded.build.dockerfile_path or "Dockerfile") == "Dockerfile"
