"""Outputs with the name of an asset are registered when their step has completed."""

from pathlib import Path

import pytest

from allranks.api import run
from allranks.history import registered
from allranks.history.store import Store
from pipeline_files import write

PIPELINE = """
type: pipeline
outputs: {whole: {type: uri_folder, name: all_words}, nested: {type: uri_folder, name: nested_words}}
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
  inner:
    type: pipeline
    component: ./inner.yml
    outputs: {one: {type: uri_folder, name: inner_words}, two: "${{parent.outputs.nested}}"}
  tune:
    type: sweep
    trial: ./trial.yml
    search_space: {rate: {type: choice, values: [1, 2]}}
    sampling_algorithm: grid
    objective: {goal: minimize, primary_metric: loss}
    limits: {max_total_trials: 2}
    outputs: {model: {type: custom_model, name: best_model}}
"""
INNER = """
type: pipeline
name: inner
version: "1"
outputs: {one: {type: uri_folder}, two: {type: uri_folder}}
jobs:
  writes:
    type: command
    command: echo hi > ${{outputs.a}}/words && echo ho > ${{outputs.b}}/words
    environment: azureml:cpu:1
    outputs: {a: "${{parent.outputs.one}}", b: "${{parent.outputs.two}}"}
"""
TRIAL = """
type: command
name: trial
version: "1"
inputs: {rate: {type: integer}}
outputs: {model: {type: custom_model}}
environment: azureml:cpu:1
command: >-
  echo ${{inputs.rate}} > ${{outputs.model}}/rate && printf
  '{"event": "progress", "step": 1, "metrics": {"loss": %s}, "total": 1, "epoch": 0, "time": 1}\\n' ${{inputs.rate}}
  >> $ALLRANKS_REPORT
"""


@pytest.mark.slow
def test_versions(here: Path) -> None:
    for name, text in {"named": PIPELINE, "inner": INNER, "trial": TRIAL}.items():
        write(here, f"{name}.yml", text)
    options = {"track": False, "instances": "loopback"}
    for force in (False, False, True):
        run.run("named.yml", force_rerun=force, **options).wait(check=False)
    with Store(here / ".allranks" / "allranks.db") as store:
        versions = {
            name: registered.versions(store.connection, kind, name)
            for kind in ("data", "model")
            for name in registered.names(store.connection, kind)
        }
    assert {name: [each.version for each in found] for name, found in versions.items()} == {
        "words": ["4"],
        **{key: ["2", "1"] for key in ("all_words", "inner_words", "nested_words", "best_model")},
    }
    assert (versions["nested_words"][0].path / "words").read_text() == "ho\n"
    assert (versions["best_model"][0].path / "rate").read_text() == "1\n"
    assert (versions["words"][0].path / "words").read_text() == "hi\n"
