"""Azure ML pipeline components for distributed training, and an engine that runs the same pipelines on one machine."""

__version__ = "0.1.0"
