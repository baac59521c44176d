"""Tune a classifier of images: a sweep trains it with several settings on several instances and stops bad trials early.
The model of the best trial is evaluated and registered.

    allranks run pipelines/tune_image_classifier.py
    allranks run pipelines/tune_image_classifier.py --set num_train_epochs=20

`allranks submit pipelines/tune_image_classifier.py` submits the same pipeline to Azure ML.
"""

from azure.ai.ml import Input
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.sweep import BanditPolicy, Choice, LogUniform, RandomSamplingAlgorithm

from allranks import layout
from allranks.library import evaluate_image_classifier, prepare_images, register_model, train_image_classifier


@pipeline(
    name="tune_image_classifier",
    display_name="Tune an image classifier",
    description="Searches for good settings of a training on several instances, and registers the best model.",
)
def tune_image_classifier(
    num_train_epochs: Input(type="integer", min=1) = 6,
    model_name: Input(type="string") = "tuned-image-classifier",
):
    prepare = prepare_images()

    train = train_image_classifier(
        data=prepare.outputs.images,
        model="resnet_micro",
        num_train_epochs=num_train_epochs,
        learning_rate=LogUniform(min_value=-8.0, max_value=-3.0),  # the exponents: 0.0003 to 0.05
        max_shift=Choice([0, 1]),
    )
    tune = train.sweep(
        primary_metric="validation_accuracy",
        goal="maximize",
        max_total_trials=4,
        max_concurrent_trials=2,
        early_termination_policy=BanditPolicy(slack_factor=0.2, evaluation_interval=1, delay_evaluation=2),
    )
    tune.sampling_algorithm = RandomSamplingAlgorithm(seed=1, rule="sobol")
    layout(tune, instance_count=2, process_count_per_instance=2)

    evaluate = evaluate_image_classifier(data=prepare.outputs.images, model=tune.outputs.model)
    register = register_model(model=tune.outputs.model, metrics=evaluate.outputs.metrics, name=model_name)
    return {"model": tune.outputs.model, "registration": register.outputs.registration}
