# Each target does its own set-up: a fresh clone needs nothing but Python 3.11 or newer.
# The virtual environment is made anew whenever pyproject.toml changes.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# pylance warns of each index type that it does not know, whenever it opens such a table.
export LANCE_LOG ?= error

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test fuzz lint format bench clean

help:
	@echo "make demo    index Python's standard library and query it"
	@echo "make test    lint, type check and tests"
	@echo "make fuzz    random tables and statements against plain DataFusion: FUZZ_SECONDS=600 FUZZ_SEED=1"
	@echo "make lint    ruff and pyright"
	@echo "make format  let ruff rewrite the files"
	@echo "make bench   timings against other readers of the same table"
	@echo "make clean   remove the virtual environment and what tools left behind"

demo: $(VENV)/.installed
	@$(BIN)/python examples/python_stdlib.py

test: lint
	@$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

# What differs is printed as a script, and fails the run. Another seed tries other tables.
FUZZ_SECONDS ?= 600
FUZZ_SEED ?= 1
fuzz: $(VENV)/.test
	@$(BIN)/python -m tests.oracle --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)

lint: $(VENV)/.test
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright --pythonpath $(BIN)/python

format: $(VENV)/.test
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/.bench
	@$(BIN)/python benchmarks/label_list.py
	@$(BIN)/python benchmarks/list_element.py
	@$(BIN)/python benchmarks/list_element_build.py
	@$(BIN)/python benchmarks/any_element.py
	@$(BIN)/python benchmarks/minhash_search.py
	@$(BIN)/python benchmarks/minhash_pairs.py

clean:
	rm -rf $(VENV) build dist *.egg-info .hypothesis .pytest_cache .ruff_cache benchmarks/.tables

$(VENV)/.installed: pyproject.toml
	@for python in $(PYTHON) python3.11 python3.12 python3.13 python3; do \
	    if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "making $(VENV) with $$("$$python" --version)" && "$$python" -m venv --clear $(VENV) && exit; \
	    fi; \
	done; echo "no Python 3.11 or newer found: set PYTHON=/path/to/python" >&2; exit 1
	@$(PIP) --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.installed
	@$(PIP) --editable '.[test]'
	@touch $@

$(VENV)/.bench: $(VENV)/.installed
	@$(PIP) --editable '.[bench]'
	@touch $@
