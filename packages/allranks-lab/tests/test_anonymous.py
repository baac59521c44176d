"""What a published report may not have: names, ids and addresses of a workspace, its machines and its users."""

import time

import pytest

from allranks_lab.verification.anonymous import anonymous, describe, longest_first

NAMES = longest_first({"contoso": "workspace", "contoso-rg": "resource group", "me": "user", "10.1.0.4": "address 0"})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("run in contoso of contoso-rg", "run in <workspace> of <resource group>"),
        ("10.1.0.4:6000;10.1.0.5:6000", "<address 0>:6000;<an address>:6000"),
        (
            "/subscriptions/6a1/resourceGroups/research/providers/X/workspaces/secret-project/jobs/1",
            "/subscriptions/<subscription>/resourceGroups/<resource group>/providers/X/workspaces/<workspace>/jobs/1",
        ),
        ("wss://research01.blob.core.windows.net/x?a=1", "wss://<host of Azure>/x?a=1"),
        ("azureml://eastus.api.azureml.ms/mlflow", "azureml://<host of Azure>/mlflow"),
        ("owner ada.lovelace@contoso.com", "owner <e-mail>"),
        ("11111111-2222-3333-4444-555555555555_3", "<id>_3"),
        ("id 11111111-2222-3333-4444-555555555555", "id <id>"),
        ("/mnt/azureml/cr/j/0a8f1c2b3d4e5f60718293a4b5c6d7e8/exe/wd", "/mnt/azureml/cr/j/<hex>/exe/wd"),
        ("tvmps_0a8f1c2b3d4e5f60718293a4b5c6d7e8_d", "<node>"),
        ("/home/ada/project and /Users/ada/x", "/home/<user>/project and /Users/<user>/x"),
        ("https://x/y?sv=2024&sig=abcdefghijkl", "https://x/y?sv=2024&sig=***"),
        ("torch 2.13.0+cu126 on 127.0.0.1, 0.0.0.0, 25276502016 bytes", None),
        ("Standard_D4s_v5, ext4, fuse.blobfuse2, eth0, rank_0, /dev/shm, [20000, 20000]", None),
    ],
)
def test_what_identifies_is_replaced_and_nothing_else(text: str, shown: str | None) -> None:
    assert anonymous(text, NAMES) == (text if shown is None else shown)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("4", "4"),
        ("True", "True"),
        ("", ""),
        ("<address 0>;<address 1>", "<address 0>;<address 1>"),
        ("secret-project", "(a text)"),
        ("20261125", "(a text)"),
        ('{"account": "x"}', "(JSON)"),
        ("/mnt/azureml/cr/j/contoso", "(a path below /mnt)"),
        ("https://contoso.example", "(an address)"),
    ],
)
def test_the_value_of_an_unknown_variable_is_described(value: str, shown: str) -> None:
    assert describe(value) == shown


@pytest.mark.parametrize("text", ["a" * 64_000, "a.a-" * 16_000 + "@", "a-" * 32_000])
def test_a_long_line_takes_no_longer_for_its_shape(text: str) -> None:
    started = time.process_time()
    assert anonymous(text) == text
    assert time.process_time() - started < 2  # seconds; it takes 0.1, and took 97 where a pattern began anywhere
