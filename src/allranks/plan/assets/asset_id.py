"""Parse the ids of components, data, environments, models and code, in every form that users write.

The forms are those of azure-ai-ml (`azure.ai.ml.constants._common`, `azure.ai.ml._utils._arm_id_utils` and
`_storage_utils` of 1.35):

    azureml:NAME:VERSION, azureml:NAME@LABEL, azureml:NAME        in the workspace of the job
    NAME:VERSION, NAME@LABEL                                      the same, after the SDK has dropped the prefix
    azureml://registries/R/components/NAME/versions/VERSION       in a registry; also .../labels/LABEL
    azureml://datastores/D/paths/PATH                             a path in a datastore
    azureml://subscriptions/S/resourcegroups/G/workspaces/W/datastores/D/paths/PATH
    azureml://locations/L/workspaces/W/data/NAME/versions/VERSION
    /subscriptions/S/resourceGroups/G/providers/Microsoft.MachineLearningServices/workspaces/W/data/NAME/versions/VERSION
    wasbs://..., abfss://..., https://..., any other URI          storage, or code such as git+https://...
"""

import re
from dataclasses import dataclass

COMPONENT, DATA, ENVIRONMENT, MODEL, CODE = "component", "data", "environment", "model", "code"
DATASTORE = "datastore"
STORAGE = "storage"
"""The kind of an id without a name: the URI of a file or folder."""

LATEST = "latest"
"""The label of the most recently registered version."""

_PLURALS = {
    COMPONENT: "components",
    DATA: "data",
    ENVIRONMENT: "environments",
    MODEL: "models",
    CODE: "codes",
    DATASTORE: "datastores",
}
_KINDS = {spelling: kind for kind, plural in _PLURALS.items() for spelling in (kind, plural)}
# The documentation of registries writes `component`, the SDK `components`.

_SCOPES = {
    "subscriptions": "subscription",
    "resourcegroups": "group",
    "locations": "location",
    "workspaces": "workspace",
    "registries": "registry",
}
"""Segment of an id -> the field for the segment after it."""

_PREFIX = "azureml:"
_PROVIDER = "Microsoft.MachineLearningServices"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:/")
_ARM = re.compile(r"/?subscriptions/[^/]+/", re.IGNORECASE)


@dataclass(frozen=True)
class AssetId:
    """The parts of an id.

    kind:    component, data, environment, model, code, datastore, or storage
    name:    of the asset or the datastore; "" for storage, and for code at a URI
    version: "" if `label` is set
    path:    below a datastore; the whole URI if there is no name

    The other fields identify where the asset is registered; all are "" for the workspace of the job.
    """

    kind: str
    name: str = ""
    version: str = ""
    label: str = ""
    path: str = ""
    registry: str = ""
    subscription: str = ""
    group: str = ""
    location: str = ""
    workspace: str = ""

    def __str__(self) -> str:
        """Return the id in the form that Azure ML accepts."""
        if not self.name:
            return self.path
        scope = [f"{word}/{value}" for word, name in _SCOPES.items() if (value := getattr(self, name))]
        if not scope and self.kind != DATASTORE:
            return _PREFIX + self.short
        version = f"/versions/{self.version}" if self.version else f"/labels/{self.label}" if self.label else ""
        own = f"{_PLURALS[self.kind]}/{self.name}{version}"
        if self.kind == DATASTORE:
            own += f"/paths/{self.path}" if self.path else ""
        elif self.subscription and self.group and self.workspace and not self.location:
            scope_path = f"/subscriptions/{self.subscription}/resourceGroups/{self.group}/providers/{_PROVIDER}"
            return f"{_PREFIX}{scope_path}/workspaces/{self.workspace}/{own}"
        return f"{_PREFIX}//{'/'.join([*scope, own])}"

    @property
    def short(self) -> str:
        """Return the name with its version or label: ``train:3``, ``train@latest``."""
        if self.version:
            return f"{self.name}:{self.version}"
        return f"{self.name}@{self.label}" if self.label else self.name

    @property
    def is_scoped(self) -> bool:
        """Return whether the id names a registry or a workspace."""
        return any(getattr(self, name) for name in _SCOPES.values())


def parse(text: str, kind: str) -> AssetId:
    """Return the parts of an id.

    kind: the kind if the id does not contain it, as in ``azureml:NAME:VERSION``

    Raise ValueError, with the reason, for a text that is not an id.
    """
    text = text.strip()
    rest = text.removeprefix(_PREFIX)
    if text.startswith(f"{_PREFIX}//"):
        return _from_segments(text, rest[2:])
    if _ARM.match(rest):
        return _from_segments(text, rest.removeprefix("/"))
    if _SCHEME.match(rest):
        return AssetId(STORAGE, path=rest)
    if "/" in rest:
        raise ValueError("a name has no slash; an ARM id begins with /subscriptions/")
    return _named(kind, rest)


def _named(kind: str, text: str) -> AssetId:
    name, colon, version = text.partition(":")
    if colon and "@" in text:
        raise ValueError("it has a version and a label")
    if colon and not version:
        raise ValueError("there is no version after the colon")
    name, at, label = name.partition("@")
    if at and not label:
        raise ValueError("there is no label after the @")
    if not name:
        raise ValueError("it has no name")
    return AssetId(kind, name, version, label)


def _from_segments(text: str, rest: str) -> AssetId:
    segments = rest.split("/")
    scope: dict[str, str] = {}
    while segments and (word := segments[0].lower()) in (*_SCOPES, "providers"):
        if len(segments) < 2 or not segments[1]:
            raise ValueError(f"nothing stands after {segments[0]}")
        if word in _SCOPES:
            scope[_SCOPES[word]] = segments[1]
        del segments[:2]
    word, *following = segments or [""]
    kind = _KINDS.get(word.lower())
    if kind is None:
        if scope:
            kinds = f"expected one of {', '.join(_PLURALS.values())}"
            raise ValueError(f"{word} is not a kind of asset; {kinds}" if word else f"it names no asset; {kinds}")
        # The output of a job, azureml://jobs/..., and other forms.
        return AssetId(STORAGE, path=text)
    if not following or not following[0]:
        raise ValueError(f"no name follows {word}")
    name, *more = following
    if kind == DATASTORE:
        if more not in ([], [""]) and more[0] != "paths":
            raise ValueError(f"{more[0]} is in the place of paths, after the datastore")
        return AssetId(kind, name, path="/".join(more[1:]), **scope)
    if not more:
        return AssetId(kind, name, **scope)
    if len(more) != 2 or more[0] not in ("versions", "labels") or not more[1]:
        raise ValueError(f"/{'/'.join(more)} is in the place of /versions/VERSION or /labels/LABEL")
    return AssetId(kind, name, **{more[0].removesuffix("s"): more[1]}, **scope)
