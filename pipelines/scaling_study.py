"""Train on 1, 2, 4 and more instances, and write a page on how it scales and where more instances stop paying.

    allranks run pipelines/scaling_study.py --slots 1
    allranks run pipelines/scaling_study.py --slots 1 --set scaling=weak --set inputs="{max_steps: 80}"
    allranks run pipelines/scaling_study.py --slots 1 --set component=mine/component.yaml --set inputs=mine/inputs.yaml

With --slots 1 the trainings do not run at the same time, since on this machine they would slow each other down. For a
training that needs other steps first, write a pipeline:

    from pipelines.scaling_study import study_scaling

    @pipeline()
    def my_study():
        data = my_preparation()
        study = study_scaling(
            lambda count: my_training(data=data.outputs.data, per_device_train_batch_size=512 // count), [1, 2, 4, 8]
        )
        return {"scaling": study.outputs.scaling}

The component has an output `history`: docs/how-to/scaling.md describes it.
`allranks submit pipelines/scaling_study.py` submits the same pipeline to Azure ML.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from azure.ai.ml import Input, load_component
from azure.ai.ml.dsl import pipeline

from allranks import layout
from allranks.library import compare_scaling, prepare_text, train_language_model

MOST = 8
"""Maximum number of histories of compare_scaling."""


def study_scaling(train: Callable[[int], Any], instance_counts: Sequence[int], **compared: Any) -> Any:
    """Add the steps of a study to the pipeline that is being written, and return the one with the output `scaling`.

    train:    returns the training step for a number of instances; this function sets its instance_count
    compared: inputs of compare_scaling, such as min_efficiency and price_per_hour

    Raise ValueError if the counts cannot be compared.
    """
    if not instance_counts or sorted(set(instance_counts)) != list(instance_counts) or instance_counts[0] < 1:
        raise ValueError(f"instance_counts are {list(instance_counts)}; give each once, from 1 upwards, as in 1,2,4")
    if len(instance_counts) > MOST:
        raise ValueError(f"instance_counts are {len(instance_counts)} numbers; give at most {MOST}")
    histories = {}
    for number, count in enumerate(instance_counts, start=1):
        step = train(count)
        step.name = f"on_{count}"
        layout(step, instance_count=count)
        histories[f"history_{number}"] = step.outputs.history
    compare = compare_scaling(**histories, **compared)
    compare.name = "compare"
    return compare


# The non-pipeline inputs decide which steps exist, and their batch, when the pipeline is built. The values of other
# inputs are only known when it runs.
@pipeline(
    name="scaling_study",
    display_name="Scaling study",
    description="Trains the same on more and more instances, and finds where more stop paying.",
    non_pipeline_inputs=["instance_counts", "scaling", "component", "inputs", "batch_input"],
)
def scaling_study(
    processes_per_instance: Input(type="integer", min=1) = 1,
    warm_up_steps: Input(type="integer", min=0) = 10,
    min_efficiency: Input(type="number", min=0.0, max=1.0) = 0.7,
    price_per_hour: Input(type="number", min=0.0, optional=True) = None,
    instance_counts: str = "1,2,4",
    scaling: str = "strong",
    component: str = "",
    inputs: str = "",
    batch_input: str = "per_device_train_batch_size",
):
    """
    instance_counts: the numbers of instances, with commas
    scaling:         strong: the batch of all ranks together is the same for all; weak: that of each rank
    component:       the component.yaml of a training with the output `history`; by default our language model
    inputs:          what it is given: a YAML file, or YAML itself
    batch_input:     its input with the batch of one rank, which is divided in strong scaling; "" if it has none
    """
    if component:
        training, training_inputs = load_component(component), {}
        name = training.display_name or training.name
    else:
        prepare = prepare_text()
        training, name = train_language_model, train_language_model.component.display_name
        # The batch of a step is large enough for four instances.
        training_inputs = {"data": prepare.outputs.text, "hidden_size": 128, "num_attention_heads": 4}
        training_inputs |= {"max_steps": 60, "logging_steps": 5, "per_device_train_batch_size": 16}
    training_inputs |= values(inputs)
    counts = numbers(instance_counts)

    def train(count: int) -> Any:
        step = training(**training_inputs | divided(training_inputs, batch_input, count, counts[0], scaling))
        if not component:
            layout(step, process_count_per_instance=processes_per_instance)
        return step

    study = study_scaling(
        train,
        counts,
        title=f"Scaling of {name}",
        warm_up_steps=warm_up_steps,
        min_efficiency=min_efficiency,
        price_per_hour=price_per_hour,
    )
    return {"scaling": study.outputs.scaling}


def numbers(text: str) -> list[int]:
    """Parse a list such as 1,2,4. Raise ValueError."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(f"instance_counts is {text!r}; give numbers with commas between, as in 1,2,4") from None


def values(text: str) -> dict[str, Any]:
    """Read inputs from YAML or a YAML file. Data is a mapping of type and path, relative to the file. Raise
    ValueError."""
    folder, content = Path.cwd(), yaml.safe_load(text) if text else {}
    if isinstance(content, str):
        folder, content = Path(text).resolve().parent, yaml.safe_load(Path(text).read_text(encoding="utf-8")) or {}
    if not isinstance(content, dict):
        raise ValueError(f"inputs is {text!r}; give a YAML file of names and values, or '{{epochs: 3}}'")
    return {
        name: Input(**value | {"path": path_from(folder, value["path"])}) if isinstance(value, dict) else value
        for name, value in content.items()
    }


def path_from(folder: Path, path: str) -> str:
    """Return the path of data: relative to the folder, unless it is in a datastore or on the web."""
    return path if ":" in path else str(folder / path)


def divided(given: dict[str, Any], name: str, count: int, first: int, scaling: str) -> dict[str, int]:
    """Return the batch input on `count` instances, if it is that of the inputs on `first` ones. Raise ValueError."""
    if scaling not in ("strong", "weak"):
        raise ValueError(f"scaling is {scaling!r}; give strong or weak")
    if scaling == "weak" or not name:
        return {}
    if name not in given:
        raise ValueError(f"strong scaling needs {name} among the inputs; give it, or its name by batch_input")
    whole = given[name] * first
    if whole % count:
        raise ValueError(f"{name} is {given[name]} on {first} instances; give one that {count} instances can divide")
    return {name: whole // count}
