# Two commands are all the set-up there is: `make demo` and `make test`. Each makes its own .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TENSORFLOW := .venvs/allranks-tensorflow
TENSORFLOW_HOROVOD := .venvs/allranks-tensorflow-horovod
AZURITE := .azurite
# The version that is tested. Its build is chosen by install/torch.sh; make TORCH=... demo installs a package as it is.
ifeq ($(origin TORCH), undefined)
TORCH := torch==2.13.0
CPU_INDEX ?= https://download.pytorch.org/whl/cpu
else
CPU_INDEX :=
endif
# Prints what it installs: the sizes of the downloads below were measured with Python 3.11 on x86_64.
INSTALL := install/packages.sh
# Python compiles a file when it is first imported; pip would compile all of torch, Ray and the others: half its time. But
# where Python is told not to keep what it compiled, it would do so at each start.
ifndef PYTHONDONTWRITEBYTECODE
export PIP_NO_COMPILE := 1
else
export UV_COMPILE_BYTECODE := 1
endif
# Packages beside this one, which only the tests need.
PACKAGES := $(patsubst %/pyproject.toml,%,$(wildcard packages/*/pyproject.toml))
# The folders of the steps' programs. mypy checks each by itself: the names of their modules recur.
PROGRAMS := $(sort $(dir $(filter-out components/shared/%,$(wildcard components/*/*/*.py))))
# A pipeline's first argument is the file; what else `make demo` is to be given: make demo ARGS="--set epochs=5"
ARGS ?=

.PHONY: FORCE azurite demo demo-lm test test-quick test-recipes test-faults test-images lint format benchmarks docs tensorflow tensorflow-horovod horovod deepspeed-ops clean

demo: $(VENV)/.demo
	$(BIN)/allranks run pipelines/image_classification.py $(ARGS)

# A GPT of 3 million parameters on the sources of Python's standard library, by DeepSpeed ZeRO 2 under MPI.
demo-lm: $(VENV)/.demo-lm
	$(BIN)/allranks run pipelines/language_model.py --set launch=mpi --set strategy=deepspeed $(ARGS)
	$(BIN)/allranks logs latest sample

# What is to be compiled is compiled while the rest is installed and checked.
test:
	$(MAKE) --jobs=3 horovod deepspeed-ops lint tensorflow azurite
	tools/tmp_in_memory.sh $(BIN)/python -m pytest -n 5 --dist loadgroup -m "not recipe"

test-quick: lint
	tools/tmp_in_memory.sh $(BIN)/python -m pytest -n 3 --dist loadgroup -m "not slow"

# Whole pipelines, each until its model is as good as is said, and downloads from servers on loopback: some 8 minutes.
test-recipes: $(VENV)/.recipes
	$(MAKE) --jobs=3 horovod deepspeed-ops tensorflow azurite
	tools/tmp_in_memory.sh $(BIN)/python -m pytest -n 2 --dist loadgroup -m recipe

# Every fault of every stack (packages/allranks-lab/docs/faults.md), and 25 random ones. More of these:
# make test-faults LAUNCHES=500
LAUNCHES ?= 25
test-faults:
	$(MAKE) --jobs=3 horovod deepspeed-ops tensorflow
	ALLRANKS_ALL_FAULTS=1 ALLRANKS_FAULT_LAUNCHES=$(LAUNCHES) \
	  tools/tmp_in_memory.sh $(BIN)/python -m pytest -n 3 packages/allranks-lab/tests/faults

# Makes a Debian, builds images on it and proves them inside: some 20 minutes, root, buildah and debootstrap.
test-images: $(VENV)/.dev
	$(BIN)/python tests/environments/images/local_images.py
	ALLRANKS_TEST_IMAGES=1 $(BIN)/python -m pytest -o timeout=1200 tests/environments/images

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	for folder in $(PROGRAMS); do MYPYPATH=$$folder $(BIN)/mypy --no-error-summary $$folder*.py || failed=1; done; exit $${failed:-0}
	$(BIN)/python tools/lint_floors.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

benchmarks: $(VENV)/.dev
	for file in benchmarks/*.py; do $(BIN)/python $$file || failed=1; done; exit $${failed:-0}

# The pages that are made from the source. tools/make_stacks.py and make_run_picture.py run trainings: start them by hand.
docs: $(VENV)/.dev
	for page in api checks cli components library sizes; do $(BIN)/python tools/make_$$page.py || exit 1; done

# TensorFlow does not share its packages with torch: steps with that environment run in an interpreter of their own.
tensorflow: $(TENSORFLOW)/.installed

# The same with a Horovod that is built for it, in another environment: it takes an older TensorFlow. Its tests are left
# out where it is missing.
tensorflow-horovod: $(TENSORFLOW_HOROVOD)/.installed

# Microsoft's emulator of Azure Storage, from which the recipes download. Left out where npm is not here or finds no
# registry.
azurite: $(AZURITE)/.installed

# Built once from Horovod's unmodified source package (3 minutes), and kept for the next environment at this place.
horovod: $(VENV)/.horovod

# For scripts that call DeepSpeed by themselves: it builds this at its start otherwise, on every rank.
deepspeed-ops: $(VENV)/.dev
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python environments/deepspeed/build_ops.py

clean:
	rm -rf $(VENV) .venvs $(AZURITE) .allranks

$(VENV)/.demo: pyproject.toml | $(VENV)/.torch
	@$(INSTALL) $(VENV) "the packages of make demo (240 MB)" --editable ".[images]"
	touch $@

$(VENV)/.demo-lm: pyproject.toml | $(VENV)/.torch
	@$(INSTALL) $(VENV) "the packages of make demo-lm (230 MB)" --editable ".[text,mpi,deepspeed]"
	touch $@

# Two pips at once in one environment are one too many: what Horovod's build needs is there before the rest is installed.
$(VENV)/.dev: pyproject.toml $(PACKAGES:%=%/pyproject.toml) | $(VENV)/.build
	@$(INSTALL) $(VENV) "the packages of the tests (400 MB)" --editable ".[dev]" $(PACKAGES:%=--editable %)
	touch $@

$(VENV)/.recipes: pyproject.toml | $(VENV)/.dev
	@$(INSTALL) $(VENV) "the packages of the recipes' tests (30 MB)" --editable ".[recipes]"
	touch $@

# Another TORCH than last time is installed over the other build, which pip would otherwise take to be as good.
$(VENV)/.torch: $(VENV)/.torch-package
	@install/torch.sh $(VENV) "$(TORCH)" "$(CPU_INDEX)" $$(test ! -e $@ || echo --force-reinstall)
	touch $@

$(VENV)/.torch-package: FORCE | $(BIN)/pip
	@echo "$(TORCH)" | cmp --silent - $@ || echo "$(TORCH)" > $@

FORCE:

$(VENV)/.build: environments/horovod/build-requirements.txt | $(VENV)/.torch
	@$(INSTALL) $(VENV) "what Horovod's build needs (25 MB)" --requirement $<
	touch $@

$(VENV)/.horovod-wheel: environments/horovod/build.sh environments/horovod/build-requirements.txt $(VENV)/.torch | $(VENV)/.build
	wheels=$$(environments/horovod/wheels.sh $(VENV)) && \
	{ test -n "$$(find "$$wheels" -name '*.whl' 2>/dev/null)" || nice environments/horovod/build.sh $(VENV) "$$wheels"; }
	touch $@

$(VENV)/.horovod: $(VENV)/.horovod-wheel | $(VENV)/.dev
	$(BIN)/pip install --quiet "$$(environments/horovod/wheels.sh $(VENV))"/*.whl
	touch $@

$(TENSORFLOW)/.installed: Makefile
	$(PYTHON) -m venv $(TENSORFLOW)
	@$(INSTALL) $(TENSORFLOW) "TensorFlow for the CPU (360 MB)" "tensorflow-cpu>=2.21,<2.22" "numpy>=2.1" "mlflow-skinny>=3.15" pandas pyyaml
	touch $@

$(TENSORFLOW_HOROVOD)/.installed: environments/tensorflow-horovod/build.sh environments/tensorflow-horovod/wheels.sh
	$(PYTHON) -m venv $(TENSORFLOW_HOROVOD)
	@$(INSTALL) $(TENSORFLOW_HOROVOD) "TensorFlow 2.15 for the CPU (320 MB)" \
	  --requirement environments/tensorflow-horovod/build-requirements.txt \
	  "tensorflow-cpu==2.15.1" "numpy==1.26.4" "mlflow-skinny>=3.15" pandas "python-dateutil<3"
	wheels=$$(environments/tensorflow-horovod/wheels.sh $(TENSORFLOW_HOROVOD)) && \
	{ test -n "$$(find "$$wheels" -name '*.whl' 2>/dev/null)" || \
	  nice environments/tensorflow-horovod/build.sh $(TENSORFLOW_HOROVOD) "$$wheels"; } && \
	$(TENSORFLOW_HOROVOD)/bin/pip install --quiet "$$wheels"/*.whl
	touch $@

$(AZURITE)/.installed:
	@if ! command -v npm >/dev/null; then echo "npm is not here: the tests run without Azurite"; \
	elif npm install --silent --no-audit --no-fund --ignore-scripts --prefix $(AZURITE) azurite@3.37.0; then touch $@; \
	else echo "Azurite could not be installed: the tests run without it"; fi

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)
