"""Which variables hold a secret, and that no screen gets one."""

from __future__ import annotations

import pytest

from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.secrets import is_secret, without_secrets


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "token",
        "WANDB_API_KEY",
        "wandb_apikey",
        "STORAGE_ACCOUNT_KEY",
        "AccountKey",
        "AWS_SECRET_ACCESS_KEY",
        "AZURE_CLIENT_SECRET",
        "DB_PASSWORD",
        "AZURE_STORAGE_CONNECTION_STRING",
        "ConnectionString",
        "BLOB_SAS",
        "SAS_URL",
        "GOOGLE_CREDENTIALS",
    ],
)
def test_a_name_that_looks_like_a_secret(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    ["TOKENIZERS_PARALLELISM", "MAX_TOKENS", "NCCL_DEBUG", "KEYBOARD", "MONKEY", "SASQUATCH", "SECRETARY", "PATH"],
)
def test_a_name_that_does_not(name: str) -> None:
    assert not is_secret(name)


def test_only_what_is_shown_is_masked() -> None:
    plan = Plan(
        "p", Graph((Step("a", "true", environment_variables={"HF_TOKEN": "hunter2", "A": "1"}), Step("b", "true")))
    )
    shown = without_secrets(plan)
    assert shown.graph.by_name["a"].environment_variables == {"HF_TOKEN": "***", "A": "1"}
    assert plan.graph.by_name["a"].environment_variables["HF_TOKEN"] == "hunter2"
