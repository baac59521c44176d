"""Train until the model is good: try three seeds, train the best of them further until its accuracy reaches a target,
and register the model only if it is better than the registered one.

    allranks run pipelines/train_until_good.py
    allranks run pipelines/train_until_good.py --set target_accuracy=0.98 --set epochs_per_round=2

`allranks submit pipelines/train_until_good.py` submits the same pipeline to Azure ML.
"""

import sys
from pathlib import Path

from azure.ai.ml import Input, PyTorchDistribution, load_component
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import Command, JobResourceConfiguration
from mldesigner.dsl import condition, do_while, parallel_for

ROOT = Path(__file__).resolve().parent.parent
COMPONENTS = ROOT / "components"
sys.path.insert(0, str(ROOT))  # for the components that are written in Python

from components.image_classification.prepare_images.component import prepare_images  # noqa: E402

register_model = load_component(COMPONENTS / "model_management/register_model/component.yaml")

train_image_classifier = load_component(COMPONENTS / "image_classification/train_image_classifier/component.yaml")
evaluate_image_classifier = load_component(COMPONENTS / "image_classification/evaluate_image_classifier/component.yaml")
check_metric = load_component(COMPONENTS / "model_management/check_metric/component.yaml")
select_best = load_component(COMPONENTS / "model_management/select_best/component.yaml")
get_champion = load_component(COMPONENTS / "model_management/get_champion/component.yaml")

MOST_ROUNDS = 8
"""Maximum number of iterations. Azure ML does not accept a pipeline input here."""


def on_one_process(step: Command) -> Command:
    """Set a step's layout to one process: the component's layout is for larger data sets than the digits."""
    step.resources = JobResourceConfiguration(instance_count=1)
    step.distribution = PyTorchDistribution(process_count_per_instance=1)
    return step


@pipeline(
    name="train_and_validate",
    display_name="Train and validate",
    description="Trains a classifier on all ranks and scores it on the validation images.",
)
def train_and_validate(
    images: Input(type="uri_folder"),
    seed: Input(type="integer", min=0),
    num_train_epochs: Input(type="integer", min=1),
    learning_rate: Input(type="number", min=1e-6),
    target_accuracy: Input(type="number", min=0.0, max=1.0),
    instance_count: Input(type="integer", min=1),
    processes_per_instance: Input(type="integer", min=1),
    initial_model: Input(type="mlflow_model", optional=True) = None,
):
    train = train_image_classifier(
        data=images,
        initial_model=initial_model,
        model="resnet_micro",
        num_train_epochs=num_train_epochs,
        learning_rate=learning_rate,
        seed=seed,
    )
    # New objects: by default, all steps of a component share its objects.
    train.resources = JobResourceConfiguration(instance_count=instance_count)
    train.distribution = PyTorchDistribution(process_count_per_instance=processes_per_instance)
    validate = on_one_process(evaluate_image_classifier(data=images, model=train.outputs.model, split="validation"))
    check = check_metric(metrics=validate.outputs.metrics, target=target_accuracy)
    return {
        "model": train.outputs.model,
        "accuracy": check.outputs.value,
        "below_target": check.outputs.missed,
    }


@pipeline(
    name="register_improvement",
    display_name="Register improvement",
    description="Registers a model if it is better than the registered one on the same test images.",
)
def register_improvement(
    images: Input(type="uri_folder"),
    model: Input(type="mlflow_model"),
    model_name: Input(type="string"),
):
    champion = get_champion(name=model_name)
    test = on_one_process(evaluate_image_classifier(data=images, model=model, baseline=champion.outputs.model))
    compare = check_metric(metrics=test.outputs.metrics)
    register = register_model(model=model, metrics=test.outputs.metrics, name=model_name)
    is_better = condition(condition=compare.outputs.improved, true_block=register)  # noqa: F841  (it names the node)
    return {"metrics": test.outputs.metrics}


@pipeline(
    name="train_until_good",
    display_name="Train until good",
    description=(
        "Tries three seeds side by side, trains the best of them further until its accuracy reaches the target, and "
        "registers the model only if it is better than the registered one."
    ),
)
def train_until_good(
    target_accuracy: Input(type="number", min=0.0, max=1.0) = 0.95,
    epochs_per_round: Input(type="integer", min=1) = 1,
    learning_rate: Input(type="number", min=1e-6) = 0.0015,
    instance_count: Input(type="integer", min=1) = 2,
    processes_per_instance: Input(type="integer", min=1) = 1,
    model_name: Input(type="string") = "image-classifier",
):
    prepare = prepare_images(source="digits")

    training = {
        "images": prepare.outputs.images,
        "num_train_epochs": epochs_per_round,
        "learning_rate": learning_rate,
        "target_accuracy": target_accuracy,
        "instance_count": instance_count,
        "processes_per_instance": processes_per_instance,
    }
    trial = train_and_validate(**training)
    seeds = parallel_for(body=trial, items=[{"seed": 0}, {"seed": 1}, {"seed": 2}])
    best = select_best(numbers=seeds.outputs.accuracy)

    # Each seed equals its index in the list. The first round repeats the best trial, so its results are reused.
    one_round = train_and_validate(seed=best.outputs.index, **training)
    loop = do_while(  # noqa: F841  (it names the node)
        body=one_round,
        mapping={one_round.outputs.model: one_round.inputs.initial_model},
        condition=one_round.outputs.below_target,
        max_iteration_count=MOST_ROUNDS,
    )
    promotion = register_improvement(
        images=prepare.outputs.images, model=one_round.outputs.model, model_name=model_name
    )
    return {"model": one_round.outputs.model, "metrics": promotion.outputs.metrics}
