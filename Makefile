# `make demo` and `make test` need no other set-up: each makes its own .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TENSORFLOW := .venvs/allranks-tensorflow
# Of npm: rules for the accessibility of pages, and Microsoft's emulator of Azure Storage.
AXE := .axe/axe-core@4.14.1
AZURITE := .azurite/azurite@3.37.0
# The pages of the studio, and the file that their build writes last.
WEB := packages/allranks-studio/web
STUDIO := packages/allranks-studio/src/allranks_studio/static/index.html
# install/torch.sh chooses the build of this version. With make TORCH=... demo, pip installs that package.
ifeq ($(origin TORCH), undefined)
TORCH := torch==2.13.0
CPU_INDEX ?= https://download.pytorch.org/whl/cpu
else
CPU_INDEX :=
endif
# Python compiles a file when it is first imported. pip would compile all of torch and Ray, which takes half of its time.
ifndef PYTHONDONTWRITEBYTECODE
export PIP_NO_COMPILE := 1
endif
PACKAGES := $(patsubst %/pyproject.toml,%,$(wildcard packages/*/pyproject.toml))
PYTEST := tools/tmp_in_memory.sh $(BIN)/python -m pytest
# Options of the demos: make demo ARGS="--set epochs=5"
ARGS ?=
# What make test installs besides: .ci/run adds chromium, which only root can.
BESIDE ?=
# Random faults of make test-faults.
LAUNCHES ?= 25

.PHONY: FORCE axe azurite chromium compiled demo demo-lm studio test test-quick test-recipes test-faults test-images lint format benchmarks dist pictures docs tensorflow tensorflow-horovod horovod deepspeed-ops clean

demo: $(VENV)/.demo
	$(BIN)/allranks run pipelines/image_classification.py $(ARGS)
demo-lm: $(VENV)/.demo-lm # A Llama of 3 million parameters, by DeepSpeed ZeRO 2 under MPI.
	$(BIN)/allranks run pipelines/language_model.py --set launch=mpi --set strategy=deepspeed $(ARGS)
	$(BIN)/allranks logs latest sample

test:
	$(MAKE) --jobs=3 horovod deepspeed-ops lint compiled tensorflow azurite axe studio $(BESIDE)
	$(PYTEST) -n 5 --dist loadgroup -m "not recipe"
test-quick: lint
	$(PYTEST) -n logical --dist loadgroup -m "not slow"
test-recipes: $(VENV)/.recipes # Whole pipelines until their models reach the stated quality, the site, and other long tests.
	$(MAKE) --jobs=3 horovod deepspeed-ops tensorflow azurite axe studio
	$(PYTEST) -n 2 --dist loadgroup -m recipe
test-faults: # Every fault of every stack (packages/allranks-lab/docs/faults.md), and random ones.
	$(MAKE) --jobs=3 horovod deepspeed-ops tensorflow
	ALLRANKS_ALL_FAULTS=1 ALLRANKS_FAULT_LAUNCHES=$(LAUNCHES) $(PYTEST) -n 3 --dist loadgroup packages/allranks-lab/tests/faults
test-images: $(VENV)/.dev # Builds images on a Debian and verifies them: 20 minutes, root, buildah and debootstrap.
	$(BIN)/python tests/environments/images/local_images.py
	ALLRANKS_TEST_IMAGES=1 $(BIN)/python -m pytest -o timeout=1200 tests/environments/images

lint: $(VENV)/.dev $(STUDIO)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/lint_programs.py
	$(BIN)/python tools/lint_floors.py
	$(BIN)/python tools/lint_pythons.py
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema -q --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-actions action.yml
	$(BIN)/zizmor -q --offline .github action.yml
	test ! -d $(WEB)/node_modules || npm --prefix $(WEB) run --silent check
format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
dist: $(VENV)/.release $(STUDIO) # The files of a release, in dist: the sdist and the wheel of each distribution.
	test -e $(STUDIO) # npm built it
	rm -rf dist
	for folder in . $(PACKAGES); do $(BIN)/python -m build --no-isolation --outdir dist $$folder || exit 1; done
	$(BIN)/python tools/add_sboms.py dist/*.whl
	$(BIN)/python -m twine check --strict dist/*
benchmarks: $(VENV)/.dev
	for file in benchmarks/*.py; do PYTHONPATH=tests $(BIN)/python $$file || failed=1; done; exit $${failed:-0}
pictures: $(VENV)/.dev # Those of the documentation: runs two trainings, and needs Chromium.
	PYTHONPATH=tests $(BIN)/python tools/make_pictures.py
docs: $(VENV)/.dev # The pages that are made from the source, and the site in build/site. It needs no network.
	for page in api checks cli components library sizes; do $(BIN)/python tools/make_$$page.py || exit 1; done
	$(BIN)/python tools/make_site.py

# Python compiles what the tests import, pytest their assertions, and Hypothesis looks for constants: once, beside the lint,
# and not by five workers at once.
compiled: $(VENV)/.dev
	@$(PYTEST) --collect-only -q -m "not recipe" >/dev/null 2>&1 || true # the tests say what is wrong
tensorflow: $(TENSORFLOW)/.installed
tensorflow-horovod: $(TENSORFLOW)-horovod/.installed
azurite: $(AZURITE)
axe: $(AXE)
studio: $(STUDIO)
chromium:
	@install/chromium.sh
horovod: $(VENV)/.horovod
deepspeed-ops: $(VENV)/.dev # DeepSpeed would otherwise build them at its start, on every rank.
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python environments/deepspeed/build_ops.py
clean:
	rm -rf $(VENV) .venvs .axe .azurite .allranks build $(dir $(STUDIO)) $(WEB)/node_modules

$(BIN)/pip:
	@install/venv.sh $(PYTHON) $(VENV)
# Another TORCH than last time replaces the other build, which pip would otherwise take to be as good.
$(VENV)/.torch-package: FORCE | $(BIN)/pip
	@echo "$(TORCH)" | cmp --silent - $@ || echo "$(TORCH)" > $@
$(VENV)/.torch: $(VENV)/.torch-package
	@install/torch.sh $(VENV) "$(TORCH)" "$(CPU_INDEX)" $$(test ! -e $@ || echo --force-reinstall) && touch $@
# The rest follows torch: two programs must not install into one environment at once.
$(VENV)/.demo: pyproject.toml | $(VENV)/.torch
	@install/packages.sh $(VENV) "the packages of make demo (240 MB)" --editable ".[images]" && touch $@
$(VENV)/.demo-lm: pyproject.toml | $(VENV)/.torch
	@install/packages.sh $(VENV) "the packages of make demo-lm (245 MB)" --editable ".[text,mpi,deepspeed]" && touch $@
$(VENV)/.build: environments/horovod/build-requirements.txt | $(VENV)/.torch
	@install/packages.sh $(VENV) "what Horovod's build needs (25 MB)" --requirement $< && touch $@
$(VENV)/.dev: pyproject.toml $(PACKAGES:%=%/pyproject.toml) | $(VENV)/.build
	@install/packages.sh $(VENV) "the packages of the tests (400 MB)" --editable ".[dev]" $(PACKAGES:%=--editable %) && touch $@
$(VENV)/.release: pyproject.toml | $(BIN)/pip
	@install/packages.sh $(VENV) "the packages of a release (110 MB)" --editable ".[release]" && touch $@
$(VENV)/.recipes: pyproject.toml | $(VENV)/.dev
	@install/packages.sh $(VENV) "the packages of the recipes' tests (30 MB)" --editable ".[recipes]" && touch $@
# Built for 3 minutes while the other packages are installed, and kept for the next environment at this place.
$(VENV)/.horovod-wheel: environments/horovod/build.sh environments/horovod/build-requirements.txt $(VENV)/.torch | $(VENV)/.build
	install/horovod.sh $(VENV) build && touch $@
$(VENV)/.horovod: $(VENV)/.horovod-wheel | $(VENV)/.dev
	install/horovod.sh $(VENV) install && touch $@
$(TENSORFLOW)/.installed: install/tensorflow.sh
	@install/tensorflow.sh $(TENSORFLOW) $(PYTHON) && touch $@
$(TENSORFLOW)-horovod/.installed: install/tensorflow-horovod.sh $(wildcard environments/tensorflow-horovod/*.sh)
	@install/tensorflow-horovod.sh $(TENSORFLOW)-horovod $(PYTHON) && touch $@
$(AXE) $(AZURITE):
	@install/npm.sh $@
$(STUDIO): $(wildcard $(addprefix $(WEB)/,*.json *.mjs src/* src/*/*))
	@install/studio.sh $(WEB)
