"""A Dockerfile for one variant: its table filled in, and without the stages that the variant does not use.

Engines differ in which stages they build (buildah before 1.29 does not see that `FROM ofed-${OFED}` needs one; Docker
without BuildKit builds all) and in whether they support cache mounts, which Azure ML's own build does not promise. So
registered Dockerfiles rely on neither; builds on this machine omit unused stages and, if possible, mount a cache.
"""

from __future__ import annotations

from collections.abc import Mapping

from allranks.environments.dockerfile import Dockerfile, Instruction, Stage, expanded

PIP_CACHE = "--mount=type=cache,target=/root/.cache/pip"


def rendered(dockerfile: Dockerfile, given: Mapping[str, str], cache: bool) -> str:
    """Return the text of the Dockerfile for a variant.

    given: values that replace those of the table
    cache: whether pip caches its downloads in a cache mount
    """
    values = {**dockerfile.values(), **given}
    lines = [f"ARG {name}={value}" for name, value in values.items()]
    for stage in needed(dockerfile, values):
        lines.append(f"\nFROM {expanded(stage.image, values)} AS {stage.name}")
        lines += [_instruction(each, dockerfile, cache) for each in stage.instructions]
    return "\n".join(lines) + "\n"


def needed(dockerfile: Dockerfile, values: Mapping[str, str]) -> tuple[Stage, ...]:
    """Return the last stage and those that it is built from, in the file's order."""
    by_name = {stage.name: stage for stage in dockerfile.stages}
    required = [dockerfile.stages[-1].name]
    for name in required:
        required += [
            source for source in _sources(by_name[name], values) if source in by_name and source not in required
        ]
    return tuple(stage for stage in dockerfile.stages if stage.name in required)


def images(dockerfile: Dockerfile, values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the images that the variant is built from, other than its own stages."""
    names = {stage.name for stage in dockerfile.stages}
    sources = (expanded(stage.image, values) for stage in needed(dockerfile, values))
    return tuple(dict.fromkeys(image for image in sources if image not in names and image != "scratch"))


def _sources(stage: Stage, values: Mapping[str, str]) -> list[str]:
    copied = (each.text for each in stage.instructions if each.name == "COPY")
    froms = [word.removeprefix("--from=") for text in copied for word in text.split() if word.startswith("--from=")]
    return [expanded(stage.image, values), *froms]


def _instruction(each: Instruction, dockerfile: Dockerfile, cache: bool) -> str:
    text = "\n".join(dockerfile.lines[each.line - 1 : each.end])
    if not cache or each.name != "RUN" or "--no-cache-dir" not in text:
        return text
    return text.replace("RUN ", f"RUN {PIP_CACHE} ", 1).replace(" --no-cache-dir", "")
