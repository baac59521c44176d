"""Outputs with the name of an asset are registered when their step has completed."""

from __future__ import annotations

from pathlib import Path

import pytest

from allranks.api import run
from allranks.runs import assets
from allranks.runs.store import Store
from pipeline_files import write

PIPELINE = """
type: pipeline
outputs: {whole: {type: uri_folder, name: all_words}}
jobs:
  words:
    type: command
    command: echo hi > ${{outputs.folder}}/words && echo hi > ${{outputs.other}}/words
    environment: azureml:cpu:1
    outputs:
      folder: {type: uri_folder, name: words, version: "4"}
      other: ${{parent.outputs.whole}}
  fails:
    type: command
    command: exit 1
    environment: azureml:cpu:1
    outputs: {folder: {type: uri_folder, name: lost}}
  reads:
    type: command
    command: cat ${{inputs.words}}/words
    environment: azureml:cpu:1
    inputs: {words: "${{parent.jobs.words.outputs.folder}}"}
"""


@pytest.mark.slow
def test_versions(here: Path) -> None:
    write(here, "named.yml", PIPELINE)
    options = {"track": False, "instances": "loopback"}
    for force in (False, False, True):
        run.run("named.yml", force_rerun=force, **options).wait(check=False)
    with Store(here / ".allranks" / "allranks.db") as store:
        versions = {
            name: assets.versions(store.connection, "data", name) for name in assets.names(store.connection, "data")
        }
    assert {name: [each.version for each in found] for name, found in versions.items()} == {
        "words": ["4"],
        "all_words": ["2", "1"],
    }
    assert (versions["words"][0].path / "words").read_text() == "hi\n"
