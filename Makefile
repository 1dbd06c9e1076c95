# Each target does its own set-up: a fresh clone needs nothing but Python 3.11 or newer.
# The virtual environment is made anew whenever pyproject.toml changes.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# DataFusion 54, the one that takes pylance's own table provider, for one peer of the benchmarks.
FFI_VENV := .venv-ffi

# pylance warns of each index type that it does not know, whenever it opens such a table.
export LANCE_LOG ?= error

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test fuzz lint format bench plots docs clean

help:
	@echo "make demo    index Python's standard library and query it"
	@echo "make test    lint, type check and tests"
	@echo "make fuzz    random tables and statements against plain DataFusion: FUZZ_SECONDS=600 FUZZ_SEED=1"
	@echo "make lint    ruff and pyright"
	@echo "make format  let ruff rewrite the files"
	@echo "make bench   timings against other readers of the same tables: BENCH='--quick', or '--help' for all"
	@echo "make plots   draw the last timings into docs/pictures/"
	@echo "make docs    build the documentation into site/"
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

# The same hits are looked for in the larger tables. The report goes where the tables are not.
ROWS ?= 1000000 10000000
BENCH_REPORT ?= benchmarks/report.json
bench: $(VENV)/.bench $(FFI_VENV)/.installed
	@$(BIN)/python benchmarks/bench.py --rows $(ROWS) --ffi $(FFI_VENV)/bin/python \
	    --json $(BENCH_REPORT) $(BENCH)

plots: $(VENV)/.bench
	@$(BIN)/python benchmarks/plots.py $(BENCH_REPORT)

docs: $(VENV)/.docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --clean
	@echo site/index.html

clean:
	rm -rf $(VENV) $(FFI_VENV) build dist *.egg-info .hypothesis .pytest_cache .ruff_cache
	rm -rf benchmarks/.tables $(BENCH_REPORT) site

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

$(VENV)/.docs: $(VENV)/.installed
	@$(PIP) --editable '.[docs]'
	@touch $@

$(FFI_VENV)/.installed: $(VENV)/.installed
	@$(BIN)/python -m venv --clear $(FFI_VENV)
	@$(FFI_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	    'datafusion>=54,<55' 'pylance>=14.0.2,<15'
	@touch $@
