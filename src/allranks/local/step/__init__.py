"""One attempt of a step: inputs staged, ranks started and monitored, outputs saved, the verdict."""
