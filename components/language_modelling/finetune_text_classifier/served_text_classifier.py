"""The text classifier that MLflow serves. It needs only the model's files."""

from typing import Any

import pandas as pd
import torch
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel
from transformers import AutoModelForSequenceClassification, AutoTokenizer

BATCH = 32


class TextClassifier(PythonModel):  # type: ignore[misc]  # MLflow is untyped
    """Labels the texts of a column, or the pairs of two columns."""

    def load_context(self, context: Any) -> None:
        folder = context.artifacts["huggingface"]
        self.tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self.model = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True)
        self.model.eval().to("cuda" if torch.cuda.is_available() else "cpu")

    # No annotations: MLflow would read a schema from them.
    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]  # noqa: ARG002
        """Return a table with label and score, its probability; or with value, if the model predicts numbers."""
        texts = [list(model_input.iloc[:, column]) for column in range(min(2, model_input.shape[1]))]
        starts = range(0, len(texts[0]), BATCH)
        logits = torch.cat([self._logits([column[start : start + BATCH] for column in texts]) for start in starts])
        if logits.shape[1] == 1:
            return pd.DataFrame({"value": logits[:, 0].tolist()})
        scores, numbers = logits.softmax(dim=1).max(dim=1)
        names = self.model.config.id2label
        return pd.DataFrame({"label": [names[number] for number in numbers.tolist()], "score": scores.tolist()})

    def _logits(self, texts: list[list[str]]) -> torch.Tensor:
        inputs = self.tokenizer(*texts, truncation=True, padding=True, return_tensors="pt")
        with torch.inference_mode():
            logits: torch.Tensor = self.model(**inputs.to(self.model.device)).logits
        return logits.float().cpu()


set_model(TextClassifier())
