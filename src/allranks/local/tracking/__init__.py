"""MLflow runs of steps. MLflow takes seconds to import and 200 MB, so a process of its own talks to it, started while
the engine does other things."""
