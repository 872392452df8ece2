# Every target sets up what it needs in .venv, inside this directory.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUILD := build
LOWEST :=
PYTEST = $(BIN)/python -m pytest -n 2
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
SOURCES := $(shell find src -name '*.py' -o -name '*.pyi' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.h' -o -name '*.css' -o -name meson.build)

.DEFAULT_GOAL := help
.PHONY: help demo test test-exactness test-matrix campaign check format docs bench clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: $(VENV)/.installed  ## leave-one-out on a bundled data set
	@$(BIN)/exactcv demo

test: $(VENV)/.installed $(VENV)/.has-test $(VENV)/.has-docs  ## all tests and the examples in the docstrings
	$(PYTEST) --doctest-modules --pyargs tests exactcv

test-exactness: $(VENV)/.installed $(VENV)/.has-test  ## only the tests of the answers and of their judge
	$(PYTEST) tests/crossval/test_exactness.py tests/judge $(wildcard tests/golden)

test-matrix:  ## all tests, with the BLAS of other processors and with the lowest versions
	@MAKE="$(MAKE)" .ci/matrix

# Problems of the campaign; make campaign COUNT=500 is a short one.
COUNT ?= 10000

campaign: $(VENV)/.installed $(VENV)/.has-test  ## long searches for wrong answers, and scikit-learn's own tests
	PYTHONPATH=tests $(BIN)/python tests/campaign/run.py --count $(COUNT)
	PYTHONPATH=tests $(BIN)/python tests/campaign/sklearn_suites/run.py

check: $(VENV)/.installed $(VENV)/.has-dev $(VENV)/.has-test  ## format, lint, types, and which room imports which
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	PATH="$(abspath $(BIN)):$$PATH" cython-lint src
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/mypy
	$(BIN)/stubtest exactcv._core --mypy-config-file pyproject.toml --allowlist tests/typing/not_in_stubs.txt
	$(BIN)/mypy --config-file tests/typing/mypy.ini tests/typing
	$(BIN)/pyright --project tests/typing --pythonpath $(BIN)/python

format: $(VENV)/.has-dev  ## put the sources in shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.installed $(VENV)/.has-docs  ## these pages, in docs/_build/html; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

bench: $(VENV)/.installed $(VENV)/.has-pandas  ## exactcv against scikit-learn (others: benchmarks/README.md)
	$(BIN)/python -m benchmarks.peers.run

# pyproject.toml is the only list of requirements.  What a part of it lists ("build", "run" or an
# extra) is installed once; LOWEST=--lowest takes the lowest versions that it allows.
$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "exactcv needs Python 3.11 or later: make PYTHON=...")'
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.has-%: pyproject.toml .ci/requirements.py | $(VENV)/.python
	@$(BIN)/python .ci/requirements.py $(LOWEST) $* > $(VENV)/$*.txt
	@echo "installing for $*:" $$(cat $(VENV)/$*.txt)
	@$(PIP) -r $(VENV)/$*.txt
	@touch $@

# $(BUILD) is kept between runs, so only what changed is compiled again.
$(VENV)/.installed: $(VENV)/.has-build $(VENV)/.has-run meson.build $(wildcard README.md) $(SOURCES)
	@echo "compiling exactcv (the first time takes a few minutes)"
	@mkdir -p $(BUILD)
	@PATH="$(abspath $(BIN)):$$PATH" $(PIP) --no-build-isolation --no-deps --force-reinstall \
		--config-settings=build-dir=$(BUILD) .
	@touch $@

clean:  ## remove everything that was made
	rm -rf .venv .venv-lowest build build-lowest docs/_build .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
