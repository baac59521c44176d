"""What the content of a YAML file says that it describes."""

import pytest

from allranks.sdk.spec_files import Kind, kind_of

TASK = {"type": "run_function", "entry_script": "score.py"}


@pytest.mark.parametrize("schema", ["pipelineComponent.schema.json", "pipelineJob.schema.json", "PipelineJob.json", ""])
def test_a_parallel_component_is_what_its_type_says(schema: str) -> None:
    address = {"$schema": f"https://azuremlschemas.azureedge.net/latest/{schema}"} if schema else {}
    assert kind_of({**address, "type": "parallel", "name": "score", "task": TASK}) is Kind.COMPONENT
