"""Batch endpoints of `LocalClient`: an invocation runs a deployed pipeline component."""

# Without `annotations` of the future: the DSL reads those of functions as they are.

from pathlib import Path
from typing import Any

import pytest
from azure.ai.ml import Input, Output, command, dsl
from azure.ai.ml.constants._endpoint import EndpointInvokeFields
from azure.ai.ml.entities import BatchEndpoint, Model, ModelBatchDeployment, PipelineComponentBatchDeployment
from azure.ai.ml.exceptions import ValidationException
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError

from allranks import InputError, LocalClient
from allranks_command import write


@dsl.pipeline(name="scoring", version="1")
def scoring(words: Input(type="uri_folder"), times: Input(type="integer", default=1)):  # type: ignore[no-untyped-def,valid-type]
    text = "for each in $(seq ${{inputs.times}}); do cat ${{inputs.words}}/words >> ${{outputs.said}}/words; done"
    inputs = {"words": Input(type="uri_folder"), "times": Input(type="integer")}
    say = command(name="say", command=text, environment="azureml:small:1", inputs=inputs, outputs={"said": Output()})
    return {"said": say(words=words, times=times).outputs.said}


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    # The SDK keeps the header of one call for the next.
    monkeypatch.delitem(EndpointInvokeFields.DEFAULT_HEADER, "azureml-model-deployment", raising=False)
    write(tmp_path, "data/words", "hello ")
    client = LocalClient(show_progress=False)
    client.batch_endpoints.begin_create_or_update(BatchEndpoint(name="scorer", description="Scores")).result()
    for name, settings in (("first", {"default_compute": "cluster"}), ("second", {"continue_on_step_failure": False})):
        deployment = PipelineComponentBatchDeployment(
            name=name, endpoint_name="scorer", component=scoring._pipeline_builder.build(), settings=settings
        )
        client.batch_deployments.begin_create_or_update(deployment).result()
    return client


def test_an_invocation_runs_the_pipeline_of_a_deployment(client: Any, tmp_path: Path) -> None:
    endpoint = client.batch_endpoints.get("scorer")
    endpoint.defaults.deployment_name = "first"
    assert client.begin_create_or_update(endpoint).result().defaults.deployment_name == "first"
    words = {"words": Input(type="uri_folder", path="data")}
    jobs = [
        client.batch_endpoints.invoke("scorer", inputs=words),
        client.batch_endpoints.invoke(
            "scorer", deployment_name="second", inputs={**words, "times": Input(type="integer", default=3)}
        ),
    ]
    for job, said in zip(jobs, ("hello ", "hello hello hello "), strict=True):
        client.jobs.stream(job.name)
        client.jobs.download(job.name, output_name="said", download_path=tmp_path / job.name)
        assert (tmp_path / job.name / "named-outputs/said/words").read_text() == said
        (step,) = client.jobs.list(parent_job_name=job.name)
        assert (step.status, step.properties["azureml.moduleName"]) == ("Completed", "say")


def test_endpoints_and_deployments_are_stored(client: Any) -> None:
    assert [endpoint.name for endpoint in client.batch_endpoints.list()] == ["scorer"]
    assert [deployment.name for deployment in client.batch_deployments.list("scorer")] == ["first", "second"]
    assert client.batch_deployments.get("second", "scorer").endpoint_name == "scorer"
    client.batch_deployments.begin_delete("second", "scorer").result()
    client.batch_endpoints.begin_delete("scorer").result()
    assert list(client.batch_endpoints.list()) == []


def test_what_cannot_be_invoked(client: Any) -> None:
    model = ModelBatchDeployment(
        name="model", endpoint_name="scorer", model=Model(name="net", version="1", path="data"), compute="cluster"
    )
    cases = {
        "fix: deploy a pipeline component": (
            InputError,
            lambda: client.batch_deployments.begin_create_or_update(model),
        ),
        "no default deployment": (HttpResponseError, lambda: client.batch_endpoints.invoke("scorer")),
        "not found": (ValidationException, lambda: client.batch_endpoints.invoke("scorer", deployment_name="third")),
        "batchEndpoints/other was not found": (ResourceNotFoundError, lambda: client.batch_endpoints.get("other")),
        "has no value": (InputError, lambda: client.batch_endpoints.invoke("scorer", deployment_name="first")),
    }
    for words, (error, call) in cases.items():
        with pytest.raises(error) as caught:
            call()
        assert words in str(caught.value)
    assert list(client.jobs.list()) == []
