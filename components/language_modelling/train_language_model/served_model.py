"""The model as MLflow serves it: prompts in, texts out. It is copied into the model, which loads without this folder.

mlflow.pyfunc.load_model(folder).predict(["def main("], params={"max_tokens": 50})
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel

from allranks_steps.text.generation import continued
from allranks_steps.text.language_model import read

DEFAULTS: dict[str, Any] = {"max_tokens": 100, "temperature": 0.8, "top_k": 50, "seed": 0}


class TextModel(PythonModel):  # type: ignore[misc]  # MLflow is untyped
    """Continues prompts."""

    def load_context(self, context: Any) -> None:
        self.model = read(Path(context.artifacts["language_model"]))
        self.model.network.to("cuda" if torch.cuda.is_available() else "cpu")

    # No annotations: MLflow would read a schema from them, which the signature already defines.
    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]  # noqa: ARG002
        """Return the continuations of a column of prompts. params: those of `continued`, and the generator's seed."""
        chosen = DEFAULTS | (params or {})
        generator = torch.Generator().manual_seed(chosen.pop("seed"))
        prompts = model_input.iloc[:, 0].tolist()
        return [continued(self.model, prompt, generator=generator, **chosen) for prompt in prompts]


set_model(TextModel())
