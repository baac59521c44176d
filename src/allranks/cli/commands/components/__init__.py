"""`allranks components`: the components of a project, and those of the library."""

from __future__ import annotations

from allranks.cli.lazy_group import lazy_group

app = lazy_group(
    __name__,
    {
        "list": "List the components of a project or of the library with their ports.",
        "copy": "Copy components of the library into a project, to change them.",
    },
    help="List the components of a project or of the library, and copy those of the library.",
    default="list",
)
