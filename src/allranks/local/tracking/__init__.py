"""MLflow runs of steps. Importing MLflow takes seconds and 200 MB, so a separate process calls it. The process starts
while the instances are made."""
