"""allranks.yaml: where it is, what it says, and every mistake in it."""

from pathlib import Path

import pytest

from allranks.errors import InputError
from allranks.plan.assets import mapping_file
from allranks.sdk.paths import nearest

GOOD = """\
components:
  registries/azureml/components/*: specs
  azureml:train@latest: train/component.yaml
data:
  titanic:1: /data/titanic
  https://account.blob.core.windows.net/c/*: blob
datastores:
  workspaceblobstore: ~/blob
environments:
models:
  azureml://registries/azureml/models/gpt2/versions/4: gpt2
run_in:
  sklearn: venv
"""


def test_what_a_file_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    path = tmp_path / "allranks.yaml"
    path.write_text(GOOD)
    file = mapping_file.read(path)
    found = file.entries
    assert file.run_in == {"sklearn": ("venv", "key run_in.sklearn (allranks.yaml:13)")}
    assert [
        (entry.section, entry.key, str(entry.path), entry.place) for entries in found.values() for entry in entries
    ] == [
        ("components", "registries/azureml/components/*", f"{tmp_path}/specs", "allranks.yaml:2"),
        ("components", "train@latest", f"{tmp_path}/train/component.yaml", "allranks.yaml:3"),
        ("data", "titanic:1", "/data/titanic", "allranks.yaml:5"),
        ("data", "https://account.blob.core.windows.net/c/*", f"{tmp_path}/blob", "allranks.yaml:6"),
        ("datastores", "datastores/workspaceblobstore", "/home/me/blob", "allranks.yaml:8"),
        ("models", "registries/azureml/models/gpt2/versions/4", f"{tmp_path}/gpt2", "allranks.yaml:11"),
    ]


def test_the_nearest_file_holds(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    assert nearest(folder, *mapping_file.NAMES) is None
    (tmp_path / "allranks.yml").touch()
    assert nearest(folder, *mapping_file.NAMES) == tmp_path / "allranks.yml"
    (tmp_path / "a" / "allranks.yaml").touch()
    assert nearest(folder, *mapping_file.NAMES) == tmp_path / "a" / "allranks.yaml"


@pytest.mark.parametrize("text", ["", "components:\n", "# components:\n#   train:3: train.yaml\n"])
def test_a_file_that_says_nothing_yet(tmp_path: Path, text: str) -> None:
    path = tmp_path / "allranks.yaml"
    path.write_text(text)
    assert not any(mapping_file.read(path).entries.values())


WRONG = {
    "component:\n  train:3: x\n": "key component (allranks.yaml:1): there is no such section; did you mean components?",
    "jobs: {}\n": "key jobs (allranks.yaml:1): there is no such section; remove it",
    "run_in:\n  train: cellar\n": "key run_in.train (allranks.yaml:2): 'cellar'; ",
    "data: [a]\n": "key data (allranks.yaml:1): ['a']; ",
    "data:\n  a:1:\n": "key data.a:1 (allranks.yaml:2): it has no path; ",
    "data:\n  a:1: 3\n": "key data.a:1 (allranks.yaml:2): 3; ",
    "data:\n  a:1: {path: x}\n": "key data.a:1 (allranks.yaml:2): {'path': 'x'}; ",
    "components:\n  a:1: https://x/y\n": "key components.a:1 (allranks.yaml:2): https://x/y is not on this machine; "
    "get a copy of it, and name the copy",
    "data:\n  a: x\n  azureml:a: y\n": "key data.azureml:a (allranks.yaml:3): it duplicates a "
    "(allranks.yaml:2); remove one",
    "components:\n  parts/train:3: x\n": "key components.parts/train:3 (allranks.yaml:2): it is not a valid id: "
    "a name has no slash; an ARM id begins with /subscriptions/; ",
    "components:\n  registries/r/models/m: x\n": "key components.registries/r/models/m (allranks.yaml:2): "
    "it is not a valid id: it names a model; ",
    "datastores:\n  azureml://datastores/b/paths/x: y\n": "key datastores.azureml://datastores/b/paths/x "
    "(allranks.yaml:2): it is not a valid id: a path of a datastore belongs under data; ",
    "models:\n  https://x/y: z\n": "key models.https://x/y (allranks.yaml:2): it is not a valid id: it names storage; ",
    "data:\n  a: x\n b: y\n": "allranks.yaml:3:2: it is not YAML: while parsing a block mapping, did not find "
    "expected key; correct it there, or in the lines before",
    "- a\n": "allranks.yaml: it is a list; ",
    "data:\n  a:1: x\n  a:1: y\n": "allranks.yaml:3: duplicate key data.a:1; rename one of the two",
    "data:\n  1: x\n": 'allranks.yaml:2: YAML does not read the key 1 as text; put it in quotes: "1"',
}


@pytest.mark.parametrize(("text", "message"), WRONG.items(), ids=WRONG)
def test_a_mistake_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("allranks.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        mapping_file.read(Path("allranks.yaml").absolute())
    (problem,) = caught.value.problems
    assert f"{problem.where}: {problem.found}; {problem.fix}" == message
