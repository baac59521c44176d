"""A designer for pipelines of Azure ML, and a view of every run, in the browser."""
