"""Ids of assets in every form that people write."""

import pytest

from allranks.plan.assets.asset_id import AssetId, parse

ARM = "/subscriptions/s1/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
IN_WORKSPACE = {"subscription": "s1", "group": "g", "workspace": "w"}

FORMS = {
    "azureml:train:3": AssetId("component", "train", "3"),
    "azureml:train:1.0.0-rc.1": AssetId("component", "train", "1.0.0-rc.1"),
    "azureml:train@latest": AssetId("component", "train", label="latest"),
    "azureml:train": AssetId("component", "train"),
    "train:3": AssetId("component", "train", "3"),
    "train@latest": AssetId("component", "train", label="latest"),
    "azureml://registries/azureml/components/sampler/versions/0.0.1": AssetId(
        "component", "sampler", "0.0.1", registry="azureml"
    ),
    "azureml://registries/azureml/component/sampler/labels/latest": AssetId(
        "component", "sampler", label="latest", registry="azureml"
    ),
    "azureml://registries/azureml/environments/sklearn-1.5/labels/latest": AssetId(
        "environment", "sklearn-1.5", label="latest", registry="azureml"
    ),
    "azureml://registries/azureml-meta/models/Llama-3.1/versions/2": AssetId(
        "model", "Llama-3.1", "2", registry="azureml-meta"
    ),
    "azureml://datastores/blob/paths/data/titanic.csv": AssetId("datastore", "blob", path="data/titanic.csv"),
    "azureml://datastores/blob/paths/data/": AssetId("datastore", "blob", path="data/"),
    "azureml://datastores/blob": AssetId("datastore", "blob"),
    "azureml://subscriptions/s1/resourcegroups/g/workspaces/w/datastores/blob/paths/x/y": AssetId(
        "datastore", "blob", path="x/y", **IN_WORKSPACE
    ),
    "azureml://subscriptions/s1/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w/datastores/"
    "blob/paths/x": AssetId("datastore", "blob", path="x", **IN_WORKSPACE),
    "azureml://locations/eastus/workspaces/123/data/titanic/versions/1": AssetId(
        "data", "titanic", "1", location="eastus", workspace="123"
    ),
    "azureml://data/titanic/versions/1": AssetId("data", "titanic", "1"),
    f"{ARM}/components/train/versions/3": AssetId("component", "train", "3", **IN_WORKSPACE),
    f"azureml:{ARM}/data/titanic/versions/1": AssetId("data", "titanic", "1", **IN_WORKSPACE),
    f"azureml:{ARM}/environments/torch/labels/latest": AssetId("environment", "torch", label="latest", **IN_WORKSPACE),
    f"{ARM}/codes/c0de/versions/1": AssetId("code", "c0de", "1", **IN_WORKSPACE),
    "wasbs://c@account.blob.core.windows.net/x.csv": AssetId(
        "storage", path="wasbs://c@account.blob.core.windows.net/x.csv"
    ),
    "abfss://fs@account.dfs.core.windows.net/x": AssetId("storage", path="abfss://fs@account.dfs.core.windows.net/x"),
    "https://account.blob.core.windows.net/c/x.csv": AssetId(
        "storage", path="https://account.blob.core.windows.net/c/x.csv"
    ),
    "azureml://jobs/calm_plum/outputs/model/paths/x": AssetId(
        "storage", path="azureml://jobs/calm_plum/outputs/model/paths/x"
    ),
}


@pytest.mark.parametrize(("text", "expected"), FORMS.items(), ids=FORMS)
def test_a_form_that_people_write(text: str, expected: AssetId) -> None:
    assert parse(text, "component") == expected
    assert parse(str(expected), expected.kind) == expected


WRONG = {
    "": "it has no name",
    "azureml:": "it has no name",
    "azureml:@latest": "it has no name",
    "train:": "there is no version after the colon",
    "train@": "there is no label after the @",
    "train:3@latest": "it has a version and a label",
    "parts/train:3": "a name has no slash; an ARM id begins with /subscriptions/",
    "azureml://registries/azureml": "it names no asset; expected one of components, data",
    "azureml://registries/": "nothing stands after registries",
    "azureml://registries/azureml/component": "no name follows component",
    "azureml://registries/azureml/jobs/x/versions/1": "jobs is not a kind of asset; expected one of components",
    "azureml://registries/azureml/components/x/version/1": "/version/1 is in the place of /versions/VERSION or",
    "azureml://registries/azureml/components/x/versions/": "/versions/ is in the place of /versions/VERSION or",
    "azureml://datastores/blob/path/x": "path is in the place of paths, after the datastore",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items(), ids=WRONG)
def test_a_text_that_is_no_id(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="^" + message.replace("/", "[/]")):
        parse(text, "component")
