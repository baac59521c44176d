"""Text generation with a language model."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from allranks_steps.text.language_model import LanguageModel


def continued(
    model: LanguageModel, prompt: str, *, max_tokens: int, temperature: float, top_k: int, generator: Generator
) -> str:
    """Return the prompt and its continuation, which ends at the end token or after max_tokens.

    temperature: 0 takes the most likely token; 1 samples from the model's distribution; below 1 sharpens it
    top_k:       sample from this many of the most likely tokens; 0 from all
    generator:   on the CPU; its seed determines the text
    """
    # Even an empty prompt needs a first token: in the training data, texts start after the end token.
    tokens = [model.end, *model.tokenizer.encode(prompt, add_special_tokens=False).ids]
    with torch.inference_mode():
        for _ in range(max_tokens):
            seen = torch.tensor([tokens[-model.shape.max_seq_length :]], device=model.network.lm_head.weight.device)
            scores = model.network.lm_head(model.network.model(seen)[0, -1])
            next_token = draw(scores.cpu(), temperature, top_k, generator)
            if next_token == model.end:
                break
            tokens.append(next_token)
    text: str = model.tokenizer.decode(tokens[1:])
    return text


def draw(scores: Tensor, temperature: float, top_k: int, generator: Generator) -> int:
    """Sample a token. scores: (vocabulary_size,)."""
    if temperature == 0:
        return int(scores.argmax())
    if 0 < top_k < len(scores):
        scores = scores.masked_fill(scores < scores.topk(top_k).values[-1], -torch.inf)
    probabilities = torch.softmax(scores.float() / temperature, dim=0)
    return int(torch.multinomial(probabilities, 1, generator=generator))
