# Every target sets up what it needs in .venv, inside this directory.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src -name '*.py' -o -name '*.pyi' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.h' -o -name meson.build)

.DEFAULT_GOAL := help
.PHONY: help demo test check format docs bench clean

help:  ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: $(VENV)/.installed  ## leave-one-out on a bundled data set
	$(BIN)/exactcv demo

test: $(VENV)/.installed  ## all tests and the examples in the docstrings
	$(BIN)/python -m pytest -n 2 --doctest-modules --pyargs tests exactcv

check: $(VENV)/.installed  ## format, lint, types, and which room imports which
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	PATH="$(abspath $(BIN)):$$PATH" cython-lint src
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/mypy
	$(BIN)/stubtest exactcv._core --mypy-config-file pyproject.toml --allowlist tests/typing/not_in_stubs.txt
	$(BIN)/mypy --config-file tests/typing/mypy.ini tests/typing
	$(BIN)/pyright --project tests/typing --pythonpath $(BIN)/python

format: $(VENV)/.requirements  ## put the sources in shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.installed  ## these pages, in docs/_build/html; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

bench: $(VENV)/.installed  ## the benchmarks of benchmarks/RESULTS.md
	$(BIN)/python benchmarks/run.py

# pyproject.toml is the only list of requirements; this prints them all.
REQUIREMENTS = import tomllib; d = tomllib.load(open('pyproject.toml', 'rb')); \
	p = d['project']; \
	print(*d['build-system']['requires'], *p['dependencies'], \
	*sum(p['optional-dependencies'].values(), []), sep='\n')

$(VENV)/.requirements: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "exactcv needs Python 3.11 or later: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -c "$(REQUIREMENTS)" > $(VENV)/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $(VENV)/requirements.txt
	touch $@

# build/ is kept between runs, so only what changed is compiled again.
$(VENV)/.installed: $(VENV)/.requirements meson.build $(wildcard README.md) $(SOURCES)
	mkdir -p build
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--no-build-isolation --no-deps --force-reinstall --config-settings=build-dir=build .
	touch $@

clean:  ## remove everything that was made
	rm -rf $(VENV) build docs/_build .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
