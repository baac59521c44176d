"""Models that were registered with the real MLflow, by version, alias and @latest."""

import pytest

from allranks.history import registered
from allranks.plan.assets.asset_id import parse
from allranks.plan.assets.lookup import NOTHING, Registration
from allranks.workspace import Workspace

pytestmark = [pytest.mark.slow, pytest.mark.mlflow, pytest.mark.xdist_group("registered models")]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Four versions of `digits`: of a run's artifacts, of a folder, deleted, and of a logged model. A space and a per
    cent sign stand in the path, since MLflow quotes some of its URIs."""
    from mlflow.tracking import MlflowClient

    workspace = Workspace(tmp_path_factory.mktemp("100% here"))
    files = workspace.root / "files"
    files.mkdir()
    (files / "weights").write_text("1")
    client = MlflowClient(workspace.tracking_uri)
    experiment = client.create_experiment("training", artifact_location=f"file://{workspace.tracked_files}")
    run = client.create_run(experiment).info
    client.log_artifacts(run.run_id, str(files), "model")
    client.create_registered_model("digits")
    client.create_model_version("digits", f"runs:/{run.run_id}/model", run.run_id)
    client.create_model_version("digits", str(files))
    client.create_model_version("digits", str(files))
    client.delete_model_version("digits", "3")
    logged = client.create_logged_model(experiment, "model", source_run_id=run.run_id)
    client.log_model_artifacts(logged.model_id, str(files))
    with pytest.MonkeyPatch.context() as patch:
        # MLflow resolves this URI with the store of the process.
        patch.setenv("MLFLOW_TRACKING_URI", workspace.tracking_uri)
        client.create_model_version("digits", f"models:/{logged.model_id}")
    client.create_model_version("digits", "https://somewhere.else/model")
    client.set_registered_model_alias("digits", "champion", "2")
    return workspace


@pytest.mark.parametrize("text", ["digits:1", "digits:2", "digits:4", "digits@champion"])
def test_a_version_that_is_on_this_machine(workspace: Workspace, text: str) -> None:
    found = registered.find(workspace, parse(text, "model"))
    assert found.path is not None
    assert (found.path / "weights").read_text() == "1"
    assert (found.path == workspace.root / "files") == (text in ("digits:2", "digits@champion"))


@pytest.mark.parametrize("text", ["digits:3", "digits:5", "digits@latest", "digits", "digits@none", "digits:9"])
def test_a_version_that_is_not(workspace: Workspace, text: str) -> None:
    assert registered.find(workspace, parse(text, "model")) == Registration(None, ("5", "4", "2", "1"))


def test_the_latest_version(workspace: Workspace) -> None:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(workspace.tracking_uri)
    client.create_registered_model("only")
    client.create_model_version("only", str(workspace.root / "files"))
    for text in ("only", "only@latest"):
        assert registered.find(workspace, parse(text, "model")).path == workspace.root / "files"


def test_another_name_is_not_registered(workspace: Workspace) -> None:
    assert registered.find(workspace, parse("letters:1", "model")) == NOTHING
