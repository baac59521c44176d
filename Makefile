# Two commands are all the set-up there is: `make demo` and `make test`. Each makes its own .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A version, so that pip does not take the newest build with gigabytes of CUDA. On a machine with GPUs: make TORCH=torch demo
TORCH ?= torch==2.13.0
# A pipeline's first argument is the file; what else `make demo` is to be given: make demo ARGS="--set epochs=5"
ARGS ?=

.PHONY: demo test test-quick lint format benchmarks docs clean

demo: $(VENV)/.demo
	$(BIN)/allranks run pipelines/image_classification.py $(ARGS)

test: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-quick: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

benchmarks: $(VENV)/.dev
	for file in benchmarks/*.py; do $(BIN)/python $$file || failed=1; done; exit $${failed:-0}

clean:
	rm -rf $(VENV) .allranks

$(VENV)/.demo: pyproject.toml | $(BIN)/pip
	$(BIN)/pip install --quiet "$(TORCH)"
	$(BIN)/pip install --quiet --editable ".[images]"
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.demo
	$(BIN)/pip install --quiet --editable ".[dev]"
	touch $@

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)
