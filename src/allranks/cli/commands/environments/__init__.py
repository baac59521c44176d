"""`allranks environments`: the images that steps run in."""

from __future__ import annotations

from allranks.cli.lazy_group import lazy_group

app = lazy_group(
    __name__,
    {
        "list": "List the environments with what is in them.",
        "check": "Say everything that is wrong, with file and line.",
        "sync": "Write what follows from the Dockerfiles.",
        "build": "Build an environment's image with buildah, podman or Docker.",
        "verify": "Prove inside an image that it is what its environment says.",
    },
    help="List, check, build and verify the environments of a project.",
)
