"""`allranks environments`: the images that steps run in."""

from __future__ import annotations

from allranks.cli.lazy_group import lazy_group

app = lazy_group(
    __name__,
    {
        "list": "List the environments of a project and what they contain.",
        "check": "Check environments without building them.",
        "sync": "Update the files that are generated from the Dockerfiles.",
        "build": "Build an environment's image with buildah, podman or Docker.",
        "verify": "Verify that an image contains what its environment declares.",
    },
    help="List, check, build and verify the environments of a project.",
)
