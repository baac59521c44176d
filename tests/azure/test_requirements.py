"""What the steps of a job require: those in loops and the trials of sweeps as those beside them."""

from pathlib import Path

import pytest

from allranks.azure.checks import of_sizes
from allranks.azure.requirements import requirements
from allranks.plan.graph import Graph
from allranks.plan.reader import opened
from pipeline_files import write

COMPONENT = """
    name: train
    version: 1.0.0
    type: command
    inputs:
      rate: {type: number, default: 0.1}
      data: {type: uri_folder, optional: true}
    outputs:
      data: {type: uri_folder}
      again: {type: boolean, is_control: true}
    environment: {image: "nvidia/cuda:13.0.2-base-ubuntu24.04"}
    distribution: {type: pytorch, process_count_per_instance: 4}
    resources: {instance_count: 2}
    command: echo ${{inputs.rate}} $[[${{inputs.data}}]] ${{outputs.data}} ${{outputs.again}}
    """
PIPELINE = """
    from azure.ai.ml import dsl, load_component
    from azure.ai.ml.dsl._do_while import do_while
    from azure.ai.ml.dsl._parallel_for import parallel_for
    from azure.ai.ml.sweep import Choice

    train = load_component(source="./train.yml")

    @dsl.pipeline
    def inner():
        train()

    @dsl.pipeline(default_compute="v100")
    def pipeline():
        plain = train()
        repeated = train()
        do_while(repeated, {repeated.outputs.data: repeated.inputs.data}, 7, repeated.outputs.again)
        each = train()
        parallel_for(body=each, items=[{"rate": 0.1}, {"rate": 0.2}])
        nested = inner()
        parallel_for(body=nested, items=[{}, {}])
        trial = train(rate=Choice([0.1, 0.2]))
        tuned = trial.sweep(sampling_algorithm="random", goal="minimize", primary_metric="loss")
        tuned.set_limits(max_total_trials=2)
    """


@pytest.mark.parametrize("has_plan", [False, True])
def test_the_steps_in_loops_and_of_sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_plan: bool) -> None:
    """Without a plan of the job, every step is read by itself."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "train.yml", COMPONENT)
    path = write(tmp_path, "pipeline.py", PIPELINE)
    with opened(f"{path}:pipeline", {}) as job:
        assert job.unread() == ()
        required = requirements(job.job, job.plan().graph if has_plan else Graph())
    steps = {each.where: each for each in required if each.cuda}
    names = ["plain", "repeated", "each", "nested.train", "tuned"]
    assert list(steps) == [f"step {name}" for name in names]
    assert {(each.cuda, each.processes, each.instances) for each in steps.values()} == {("13.0", 4, 2)}
    refused = {problem.where for problem in of_sizes(list(steps.values()), {"v100": "Standard_ND40rs_v2"})}
    assert refused == {f"{where}, key resources.instance_type" for where in steps}
