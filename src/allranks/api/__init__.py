"""The Python API. The command line calls it too. `allranks` itself exports what users need."""
