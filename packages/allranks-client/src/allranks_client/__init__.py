"""`allranks.LocalClient`, which stands where azure-ai-ml's MLClient stands, and what runs a script or a notebook with
it."""
