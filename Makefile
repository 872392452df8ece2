# Every target sets up what it needs in .venv, inside this directory.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src -name '*.py' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.h' -o -name meson.build)

.DEFAULT_GOAL := help
.PHONY: help demo test check format docs bench clean

help:  ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: $(VENV)/.installed  ## leave-one-out on a bundled data set
	$(BIN)/exactcv demo

test: $(VENV)/.installed  ## all tests and the examples in the docstrings
	$(BIN)/python -m pytest -n 2 --doctest-modules --pyargs tests exactcv

check: $(VENV)/.installed  ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PATH="$(abspath $(BIN)):$$PATH" cython-lint src

format: $(VENV)/.requirements  ## put the sources in shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.installed  ## these pages, in docs/_build/html; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

bench: $(VENV)/.installed  ## exactcv against scikit-learn (others: benchmarks/README.md)
	$(BIN)/python -m benchmarks.peers.run

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
