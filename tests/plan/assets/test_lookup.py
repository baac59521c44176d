"""From an id to what this machine has of it, or to the line that is missing."""

import re
from pathlib import Path

import pytest

from allranks.errors import InputError, Problem
from allranks.history import registered
from allranks.history.registered import RegisteredAsset
from allranks.history.store import Store
from allranks.plan.assets.lookup import AssetLookup, skeleton
from allranks.sdk import spec_files
from allranks.workspace import Workspace
from pipeline_files import write

SPEC = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
type: command
name: {name}
version: {version}
command: echo
environment: azureml:torch@latest
"""
ARM = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of specs and one of data."""
    monkeypatch.chdir(tmp_path)
    for number, (name, version) in enumerate((("sampler", "0.0.9"), ("sampler", "0.0.10"), ("metrics", "0.0.26"))):
        write(tmp_path, f"specs/{name}/{number}/spec.yaml", SPEC.format(name=name, version=version))
    write(tmp_path, "specs/environment.yaml", "name: sampler\nimage: x\n")
    for name in ("titanic/train.csv", "blob/nested/x.csv", "gpt2/MLmodel"):
        write(tmp_path, f"data/{name}", "x\n")
    write(tmp_path, ".venvs/torch/bin/python", "").chmod(0o755)
    return tmp_path


def find(text: str, kind: str, lines: str = "", workspace: Workspace | None = None) -> str | None:
    """The path that is found, relative to the project."""
    if lines:
        write(Path.cwd(), "allranks.yaml", lines)
    lookup = AssetLookup.of(Path.cwd(), registered.of(workspace) if workspace else None)
    found = lookup.find(text, kind, "step a, key x")
    return str(found.relative_to(Path.cwd())) if found else None


def problem(text: str, kind: str, lines: str = "", workspace: Workspace | None = None) -> Problem:
    with pytest.raises(InputError) as caught:
        find(text, kind, lines, workspace)
    (found,) = caught.value.problems
    return found


REGISTRY = "azureml://registries/azureml"
SAMPLER = f"{REGISTRY}/components/sampler"

OTHER = "specs/sampler/1/spec.yaml"

COMPONENTS = {
    "a file": (f"{SAMPLER}/labels/latest", f"{SAMPLER}/labels/latest: specs/metrics/2/spec.yaml", "metrics/2"),
    "any version": ("azureml:sampler:7", "sampler: specs/sampler/0/spec.yaml", "sampler/0"),
    "a folder by version": (f"{SAMPLER}/versions/0.0.9", "registries/azureml/components/*: specs", "sampler/0"),
    "a folder by label": (f"{SAMPLER}/labels/latest", "registries/azureml/*: specs", "sampler/1"),
    "a folder without version": ("azureml:sampler", '"*": specs', "sampler/1"),
    "the exact key first": (
        f"{SAMPLER}/versions/0.0.9",
        f'"*": specs\n  registries/azureml/components/sampler: specs/metrics\n  {SAMPLER}/versions/0.0.9: {OTHER}',
        "sampler/1",
    ),
    "the next where a folder lacks it": ("metrics:0.0.26", "metrics: specs/sampler\n  '*': specs", "metrics/2"),
    "an ARM id by name": (f"{ARM}/components/metrics/versions/0.0.26", "metrics:0.0.26: specs", "metrics/2"),
    "an ARM id by its workspace": (
        f"azureml:{ARM}/components/metrics/versions/0.0.26",
        "subscriptions/s/*: specs",
        "metrics/2",
    ),
}


@pytest.mark.parametrize(("text", "line", "folder"), COMPONENTS.values(), ids=COMPONENTS)
def test_a_component(text: str, line: str, folder: str) -> None:
    assert find(text, "component", f"components:\n  {line}\n") == f"specs/{folder}/spec.yaml"


DATA = {
    "an asset": ("titanic:1", "data:\n  titanic:1: data/titanic", "data/titanic"),
    "any asset, by its name": ("azureml:titanic@latest", 'data:\n  "*": data', "data/titanic"),
    "a URI": ("https://a/b/x.csv", "data:\n  https://a/b/x.csv: data/titanic/train.csv", "data/titanic/train.csv"),
    "URIs, by their rest": (
        "wasbs://c@a/b/titanic/train.csv",
        "data:\n  wasbs://c@a/b/*: data",
        "data/titanic/train.csv",
    ),
    "a datastore": (
        "azureml://datastores/ws/paths/nested/x.csv",
        "datastores:\n  ws: data/blob",
        "data/blob/nested/x.csv",
    ),
    "a datastore of a workspace": (
        "azureml://subscriptions/s/resourcegroups/g/workspaces/w/datastores/ws/paths/nested",
        "datastores:\n  azureml://datastores/ws: data/blob",
        "data/blob/nested",
    ),
    "a path of a datastore": (
        "azureml://datastores/ws/paths/x.csv",
        "data:\n  azureml://datastores/ws/paths/x.csv: data/blob/nested/x.csv\ndatastores:\n  ws: data",
        "data/blob/nested/x.csv",
    ),
    "paths of a datastore": (
        "azureml://datastores/ws/paths/raw/x.csv",
        "data:\n  datastores/ws/paths/raw/*: data/blob/nested",
        "data/blob/nested/x.csv",
    ),
    "a star stands for names, not for URIs": (
        "azureml://datastores/ws/paths/nested",
        'data:\n  "*": data\ndatastores:\n  ws: data/blob',
        "data/blob/nested",
    ),
}


@pytest.mark.parametrize(("text", "lines", "path"), DATA.values(), ids=DATA)
def test_data(text: str, lines: str, path: str) -> None:
    assert find(text, "data", lines) == path


def test_a_model_of_a_registry() -> None:
    assert (
        find(f"{REGISTRY}/models/gpt2/versions/4", "model", "models:\n  registries/azureml/models/*: data")
        == "data/gpt2"
    )


@pytest.mark.parametrize("line", ["torch: .venvs/torch", "'*': .venvs", "registries/*: .venvs\n  '*': .venvs/torch"])
def test_an_environment(line: str) -> None:
    assert find("azureml:torch@latest", "environment", f"environments:\n  {line}") == ".venvs/torch"


def test_what_was_registered_comes_first(project: Path) -> None:
    workspace = Workspace(project / ".allranks")
    workspace.make()
    with Store(workspace.database) as store:
        for number, version in enumerate(("2", "10", "3")):
            path = project / "specs/sampler" / ("1" if version == "3" else "0") / "spec.yaml"
            registered.add(store.connection, RegisteredAsset("component", "sampler", version, path, number))
    lines = "components:\n  '*': specs\n"
    first, second = "specs/sampler/0/spec.yaml", "specs/sampler/1/spec.yaml"
    assert find("azureml:sampler:2", "component", lines, workspace) == first
    # The version that was registered last, which is not the highest one.
    assert find("azureml:sampler@latest", "component", lines, workspace) == second
    # Another registry's component of that name is another component.
    assert find(f"{SAMPLER}/versions/0.0.9", "component", lines, workspace) == first
    # And what is not registered is looked up in the file.
    assert find("azureml:sampler:0.0.10", "component", lines, workspace) == second
    lacking = problem("azureml:sampler:4", "component", "data:\n", workspace)
    assert lacking.found == (
        "this machine does not have azureml:sampler:4; registered here: sampler:3, sampler:10, sampler:2"
    )


def test_a_version_never_changes(project: Path) -> None:
    with Store(project / "allranks.db") as store:
        version = RegisteredAsset("data", "titanic", "1", project / "data", 0)
        registered.add(store.connection, version)
        registered.add(store.connection, version)
        assert registered.versions(store.connection, "data", "titanic") == (version,)
        with pytest.raises(InputError, match=r"registered already(.|\n)*register version 2"):
            registered.add(store.connection, RegisteredAsset("data", "titanic", "1", project, 1))


ADD = {
    ("azureml:train:3", "component"): "components:\n  train:3: path/to/component.yaml",
    (f"{SAMPLER}/labels/latest", "component"): "components:\n  registries/azureml/components/sampler/labels/latest: "
    "path/to/component.yaml\nor the line for all components of the registry, in a folder of their files:\n"
    "  registries/azureml/components/*: path/to/folder",
    ("titanic@latest", "data"): "data:\n  titanic@latest: path/to/data",
    ("adl://a/b.csv?x={y}#z", "data"): "data:\n  adl://a/b.csv?x={y}#z: path/to/data",
    ("azureml://datastores/ws/paths/x", "data"): "datastores:\n  ws: path/to/folder",
    (f"azureml:{ARM}/data/titanic/versions/1", "data"): "data:\n  titanic:1: path/to/data",
    ("azureml:gpt2:4", "model"): "models:\n  gpt2:4: path/to/model",
    ("azureml:torch:1", "environment"): "environments:\n  torch:1: .venvs/NAME",
}


@pytest.mark.parametrize(("text", "kind"), ADD, ids=[text for text, _ in ADD])
def test_the_message_shows_the_line_which_then_holds(project: Path, text: str, kind: str) -> None:
    lacking = problem(text, kind)
    assert lacking.where == "step a, key x"
    head, _, lines = lacking.fix.partition("\n")
    assert (head, lines) == ("add to allranks.yaml:", ADD[text, kind])
    # A registry's component has a second line, for all of its components.
    lines = re.sub(r"\n.*\nor .*", "", lines)
    section = lines.partition(":")[0]
    paths = {
        "components": "specs/sampler/0/spec.yaml",
        "environments": ".venvs/torch",
        "datastores": "data",
    }
    write(project, "data/x", "")
    line = lines[: lines.rindex(": ") + 2] + paths.get(section, "data/titanic")
    assert find(text, kind, line)


WRONG = {
    ("azureml://registries/azureml", "component", ""): "azureml://registries/azureml is not a valid id: it names no "
    "asset; expected one of components, data, environments, models, codes, datastores",
    (f"{REGISTRY}/models/gpt2/versions/4", "component", ""): f"{REGISTRY}/models/gpt2/versions/4 names a model",
    (SAMPLER, "data", ""): f"{SAMPLER} names a component",
    ("sampler:1", "component", "components:\n  sampler: specs"): "this machine does not have azureml:sampler:1; specs "
    "has sampler in version 0.0.10 (specs/sampler/1/spec.yaml), 0.0.9 (specs/sampler/0/spec.yaml)",
    ("sampler@stable", "component", "components:\n  sampler: specs/sampler/0"): "this machine does not have "
    "azureml:sampler@stable; specs/sampler/0 has sampler in version 0.0.9 (specs/sampler/0/spec.yaml)",
    ("trainer:1", "component", "components:\n  '*': specs"): "this machine does not have azureml:trainer:1; specs has "
    "no component trainer",
    ("trainer:1", "component", "components:\n  '*': spec"): "spec does not exist",
    ("titanic:1", "data", "data:\n  titanic: titanic"): "titanic does not exist",
    ("iris:1", "data", "data:\n  '*': data"): "this machine does not have azureml:iris:1; data/iris does not exist",
    ("azureml://datastores/ws/paths/y", "data", "datastores:\n  ws: data"): "this machine does not have "
    "azureml://datastores/ws/paths/y; data/y does not exist",
    (
        "azureml://datastores/ws/paths/../y",
        "data",
        "datastores:\n  ws: data",
    ): "azureml://datastores/ws/paths/../y has .. in its path, which does not lead out of a datastore",
    ("torch:1", "environment", "environments:\n  torch: data"): "this machine does not have azureml:torch:1; data is "
    "not a virtual environment, and contains none named torch",
}


@pytest.mark.parametrize(("text", "kind", "lines"), WRONG)
def test_what_is_wrong_is_one_message(text: str, kind: str, lines: str) -> None:
    assert problem(text, kind, lines).found == WRONG[text, kind, lines]


@pytest.mark.parametrize(
    ("text", "kind", "rule"),
    [
        (f"{REGISTRY}/dataassets", "data", "asset-id"),
        (f"{REGISTRY}/models/gpt2/versions/4", "component", "asset-id"),
        ("azureml://datastores/ws/path/y", "data", "asset-id"),
        ("azureml://datastores/ws/path/y", "component", "asset-reference"),
        ("titanic:", "data", "asset-reference"),
    ],
)
def test_what_azure_ai_ml_sends_as_it_is_has_a_rule_of_its_own(text: str, kind: str, rule: str) -> None:
    found = problem(text, kind)
    assert (found.rule, found.fix) == (rule, "correct the id")


def test_two_specs_of_one_version(project: Path) -> None:
    write(project, "specs/copy/spec.yaml", SPEC.format(name="metrics", version="0.0.26"))
    found = problem("metrics@latest", "component", "components:\n  '*': specs")
    assert found.where == "key components.* (allranks.yaml:2)"
    assert found.found.endswith("describe metrics:0.0.26: specs/copy/spec.yaml, specs/metrics/2/spec.yaml")


def test_components_in_python_are_found_by_their_name(project: Path) -> None:
    write(
        project,
        "specs/count/component.py",
        """
        from mldesigner import command_component

        @command_component(name="count_words", version="2.1", environment="azureml:torch:1")
        def count():
            pass
        """,
    )
    assert [(spec.name, version) for spec, version in spec_files.find_by_name(project, "count_words").items()] == [
        ("component.py", "2.1")
    ]
    assert spec_files.find_by_name(project, "count_lines") == {}


REMOTE = {
    "a URI": ("s3://bucket/x.csv", "", "s3://bucket/x.csv"),
    "a path in a datastore": (
        "azureml://datastores/ws/paths/a/x.csv",
        "datastores:\n  ws: abfss://c@account.dfs.core.windows.net/root/",
        "abfss://c@account.dfs.core.windows.net/root/a/x.csv",
    ),
    "a data asset": ("azureml:titanic:3", "data:\n  titanic: https://a/titanic.csv", "https://a/titanic.csv"),
    "mapped to another service": ("wasbs://c@a/b/x.csv", "data:\n  wasbs://c@a/*: s3://bucket", "s3://bucket/b/x.csv"),
}


@pytest.mark.parametrize(("text", "lines", "uri"), REMOTE.values(), ids=REMOTE)
def test_data_that_is_downloaded(project: Path, text: str, lines: str, uri: str) -> None:
    if lines:
        write(project, "allranks.yaml", lines)
    lookup = AssetLookup.of(project, None)
    assert lookup.find(text, "data", "step a, key x") is None
    assert lookup.uses[-1].uri == uri
    assert skeleton(lookup.uses) == ""
    assert lookup.output(text) == (uri if lines else None)


@pytest.mark.parametrize("target", ["data", "https://account.blob.core.windows.net/container"])
def test_an_output_is_not_written_out_of_its_datastore(project: Path, target: str) -> None:
    write(project, "allranks.yaml", f"datastores:\n  ws: {target}")
    lookup = AssetLookup.of(project, None)
    assert lookup.output("azureml://datastores/ws/paths/a/${{name}}")
    with pytest.raises(InputError, match="does not lead out of a datastore"):
        lookup.output("azureml://datastores/ws/paths/a/../../${{name}}")
