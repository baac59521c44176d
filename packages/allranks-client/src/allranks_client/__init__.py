"""`allranks.LocalClient`, a replacement of azure-ai-ml's MLClient, and the runner of scripts and notebooks that use
MLClient."""
