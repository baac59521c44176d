"""The figures of scored tokens."""

from __future__ import annotations

import math


def token_scores(count: float, loss: float, correct: float) -> dict[str, float]:
    """Return count; loss, in nats per token; perplexity, its exponential; accuracy, the fraction of correct tokens.

    count, loss, correct: number of scored tokens, their summed loss, and how many of them the model predicts
    """
    mean = loss / max(count, 1)
    # Above 700 nats a token the exponential is not a float.
    perplexity = math.exp(mean) if mean < 700 else math.inf
    return {"count": int(count), "loss": mean, "perplexity": perplexity, "accuracy": correct / max(count, 1)}
