"""Gradient boosted trees, from a table to a registered model, with the rows divided over several instances.

    allranks run pipelines/gradient_boosting.py
    allranks run pipelines/gradient_boosting.py --set source=digits --set instance_count=2
    allranks run pipelines/gradient_boosting.py --set source=folder --set folder=tables --set label_column=price \\
        --set task=regression --set metric=rmse --set goal=minimize

`allranks submit pipelines/gradient_boosting.py` submits the same pipeline to Azure ML. It needs no GPU.
"""

import sys
from pathlib import Path

from azure.ai.ml import Input, PyTorchDistribution, load_component
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import JobResourceConfiguration

ROOT = Path(__file__).resolve().parent.parent
COMPONENTS = ROOT / "components"
sys.path.insert(0, str(ROOT))  # for the components that are written in Python

register_model = load_component(COMPONENTS / "model_management/register_model/component.yaml")
prepare_table = load_component(COMPONENTS / "tables/prepare_table/component.yaml")

train_gradient_boosting = load_component(COMPONENTS / "tables/train_gradient_boosting/component.yaml")
evaluate_table_model = load_component(COMPONENTS / "tables/evaluate_table_model/component.yaml")


@pipeline(
    name="gradient_boosting",
    display_name="Gradient boosting",
    description="Prepares a table, trains LightGBM on all ranks, evaluates the model on all ranks and registers it.",
)
def gradient_boosting(
    source: Input(type="string") = "make_classification",
    folder: Input(type="uri_folder", optional=True) = None,
    task: Input(type="string", enum=["classification", "regression"]) = "classification",
    label_column: Input(type="string") = "label",
    row_count: Input(type="integer", min=10) = 10000,
    tree_learner: Input(type="string", enum=["data", "voting"]) = "data",
    num_iterations: Input(type="integer", min=1) = 200,
    learning_rate: Input(type="number", min=1e-5) = 0.1,
    num_leaves: Input(type="integer", min=2) = 31,
    early_stopping_round: Input(type="integer", min=0) = 50,
    seed: Input(type="integer", min=0) = 0,
    instance_count: Input(type="integer", min=1) = 3,
    processes_per_instance: Input(type="integer", min=1) = 1,
    model_name: Input(type="string") = "gradient-boosting",
    metric: Input(type="string") = "auc",
    goal: Input(type="string", enum=["maximize", "minimize"]) = "maximize",
    threshold: Input(type="number", optional=True) = None,
):
    prepare = prepare_table(
        source=source, folder=folder, task=task, label_column=label_column, row_count=row_count, seed=seed
    )
    train = train_gradient_boosting(
        data=prepare.outputs.table,
        tree_learner=tree_learner,
        num_iterations=num_iterations,
        learning_rate=learning_rate,
        num_leaves=num_leaves,
        early_stopping_round=early_stopping_round,
        seed=seed,
    )
    evaluate = evaluate_table_model(data=prepare.outputs.table, model=train.outputs.model)
    # New objects: by default, all steps of a component share its objects.
    train.resources = evaluate.resources = JobResourceConfiguration(instance_count=instance_count)
    train.distribution = evaluate.distribution = PyTorchDistribution(process_count_per_instance=processes_per_instance)

    register = register_model(
        model=train.outputs.model,
        metrics=evaluate.outputs.metrics,
        name=model_name,
        metric=metric,
        goal=goal,
        threshold=threshold,
    )
    return {
        "model": train.outputs.model,
        "history": train.outputs.history,
        "metrics": evaluate.outputs.metrics,
        "registration": register.outputs.registration,
    }
