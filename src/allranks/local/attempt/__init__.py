"""One attempt of a step: stage inputs, start and monitor ranks, save outputs, determine the verdict."""
