"""One training on 1, 2, 4 and more instances, and a page that says how it scales and where more stop paying.

    allranks run pipelines/scaling_study.py --slots 1
    allranks run pipelines/scaling_study.py --slots 1 --set scaling=weak --set inputs="{epochs: 8, batch_size: 128}"
    allranks run pipelines/scaling_study.py --slots 1 --set component=mine/component.yaml --set inputs=mine/inputs.yaml

With --slots 1 the trainings do not run at the same time, since on this machine they would slow each other down. A
training that needs other steps first is studied from a pipeline of its own:

    from pipelines.scaling_study import study_scaling

    @pipeline(default_compute="gpu-cluster")
    def my_study():
        data = my_preparation()
        study = study_scaling(lambda count: my_training(data=data.outputs.data, batch_size=512), [1, 2, 4, 8])
        return {"scaling": study.outputs.scaling}

The component has an output `history`: docs/scaling.md says what it holds.
Nothing here knows where it runs: `MLClient.jobs.create_or_update(scaling_study())` submits the same pipeline.
"""

import copy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from azure.ai.ml import Input, PyTorchDistribution, load_component
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import JobResourceConfiguration

ROOT = Path(__file__).resolve().parent.parent
COMPONENTS = ROOT / "components"
sys.path.insert(0, str(ROOT))  # where Python finds the components that are written in it

from components.prepare_images.component import prepare_images  # noqa: E402

train_image_classifier = load_component(COMPONENTS / "train_image_classifier/component.yaml")
compare_scaling = load_component(COMPONENTS / "compare_scaling/component.yaml")

MOST = 8
"""Histories that compare_scaling takes."""


def study_scaling(train: Callable[[int], Any], instance_counts: Sequence[int], **compared: Any) -> Any:
    """Add the steps of a study to the pipeline that is being written, and return the one with the output `scaling`.

    train:    makes the training's step for a number of instances; its layout may be left to this function
    compared: inputs of compare_scaling, such as min_efficiency and price_per_hour

    Raises ValueError for counts that cannot be compared.
    """
    if not instance_counts or sorted(set(instance_counts)) != list(instance_counts) or instance_counts[0] < 1:
        raise ValueError(f"instance_counts are {list(instance_counts)}; give each once, from 1 upwards, as in 1,2,4")
    if len(instance_counts) > MOST:
        raise ValueError(f"instance_counts are {len(instance_counts)} numbers; give at most {MOST}")
    histories = {}
    for number, count in enumerate(instance_counts, start=1):
        step = train(count)
        step.name = f"on_{count}"
        # A new object, because a step begins with its component's own, which every other step of it shares.
        step.resources = copy.copy(step.resources) or JobResourceConfiguration()
        step.resources.instance_count = count
        histories[f"history_{number}"] = step.outputs.history
    compare = compare_scaling(**histories, **compared)
    compare.name = "compare"
    return compare


# What decides which steps there are, and with which batch, is no input of the pipeline, whose values are known when it
# runs.
@pipeline(
    name="scaling_study",
    display_name="Scaling study",
    description="Trains the same on more and more instances, and finds where more stop paying.",
    default_compute="cpu-cluster",
    non_pipeline_inputs=["instance_counts", "scaling", "component", "inputs", "batch_input"],
)
def scaling_study(
    process_count_per_instance: Input(type="integer", min=1) = 1,
    warm_up_steps: Input(type="integer", min=0) = 10,
    min_efficiency: Input(type="number", min=0.0, max=1.0) = 0.7,
    price_per_hour: Input(type="number", min=0.0, optional=True) = None,
    instance_counts: str = "1,2,4",
    scaling: str = "strong",
    component: str = "",
    inputs: str = "",
    batch_input: str = "batch_size",
):
    """
    instance_counts: the numbers of instances, with commas
    scaling:         strong: the batch is the same for all; weak: it grows with the instances
    component:       the component.yaml of a training with the output `history`; by default our image classifier
    inputs:          what it is given: a YAML file, or YAML itself
    batch_input:     its input with the batch of all ranks together, which grows in weak scaling
    """
    if component:
        training, given = load_component(component), {}
    else:
        prepare = prepare_images(source="digits")
        training, given = train_image_classifier, {"data": prepare.outputs.images, "epochs": 4, "batch_size": 64}
    given |= values(inputs)
    counts = numbers(instance_counts)

    def train(count: int) -> Any:
        step = training(**given | grown(given, batch_input, count / counts[0], scaling))
        if not component:
            step.distribution = PyTorchDistribution(process_count_per_instance=process_count_per_instance)
        return step

    study = study_scaling(
        train,
        counts,
        title=f"Scaling of {training.display_name or training.name}",
        warm_up_steps=warm_up_steps,
        min_efficiency=min_efficiency,
        price_per_hour=price_per_hour,
    )
    return {"scaling": study.outputs.scaling}


def numbers(text: str) -> list[int]:
    """1,2,4 as numbers. Raises ValueError."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(f"instance_counts is {text!r}; give numbers with commas between, as in 1,2,4") from None


def values(text: str) -> dict[str, Any]:
    """Inputs from YAML, or from a file of it. Data is a mapping of type and path, relative to the file. Raises
    ValueError."""
    folder, found = Path.cwd(), yaml.safe_load(text) if text else {}
    if isinstance(found, str):
        folder, found = Path(text).resolve().parent, yaml.safe_load(Path(text).read_text(encoding="utf-8")) or {}
    if not isinstance(found, dict):
        raise ValueError(f"inputs is {text!r}; give a YAML file of names and values, or '{{epochs: 3}}'")
    return {
        name: Input(**value | {"path": path_from(folder, value["path"])}) if isinstance(value, dict) else value
        for name, value in found.items()
    }


def path_from(folder: Path, path: str) -> str:
    """The path of data, below the folder where it is none of a store or of the web."""
    return path if ":" in path else str(folder / path)


def grown(given: dict[str, Any], name: str, times: float, scaling: str) -> dict[str, int]:
    """The batch for so many times as many instances. Raises ValueError."""
    if scaling not in ("strong", "weak"):
        raise ValueError(f"scaling is {scaling!r}; give strong or weak")
    if scaling == "strong":
        return {}
    if name not in given:
        raise ValueError(f"weak scaling needs {name} among the inputs; give it, or its name by batch_input")
    return {name: round(given[name] * times)}
