# `make demo` and `make test` set up what they need in .venv; a second run reuses it.

PYTHON ?= python3

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check -qq
LOCKS := requirements/torch.txt requirements/serve.lock

# The environment belongs to one Python, one place on disk and one set of locks: its stamp is
# named after them, so that a change of any makes a new one.
KEY := $(shell { $(PYTHON) -c 'import sys; print(sys.version, sys.base_prefix)'; echo '$(CURDIR)'; \
	cat $(LOCKS); } 2>/dev/null | cksum | cut -d' ' -f1)
DEV_KEY := $(shell cat requirements/dev.lock requirements/triton.txt | cksum | cut -d' ' -f1)

SERVE := $(VENV)/.serve-$(KEY)
OURS := $(VENV)/.ours-$(KEY)
DEV := $(VENV)/.dev-$(KEY)-$(DEV_KEY)

.PHONY: help demo test lint contract contract-index test-versions venv clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo   set up, then replay one request twice: a faulty plugin, then a healthy one'
	@echo 'make test   set up, then lint and run the tests'
	@echo 'make lint   ruff, mypy and the import contracts'
	@echo 'make contract        look up what we need in the sources of many vLLM releases'
	@echo 'make contract-index  the same, and keep what was found for make test'
	@echo 'make test-versions   the engine tests on several vLLM releases; 20 minutes for each'
	@echo 'make venv   set up $(VENV) only'
	@echo 'make clean  remove $(VENV), build/ and what the tools left'
	@echo
	@echo 'PYTHON=python3.12 make ...  uses another Python (3.11 or newer)'

demo: $(OURS)
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh

test: lint
	$(BIN)/python -m pytest

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Both download 16 wheels once, 1.4 GB in all, and keep their Python files in .contract/.
contract: $(DEV)
	@$(BIN)/python -m tests.contract $(ARGS)

contract-index: $(DEV)
	@$(BIN)/python -m tests.contract --write $(ARGS)

# Fetches the releases that the environment does not have, 0.5 GB each, into .versions/.
test-versions: $(DEV)
	@$(BIN)/python -m tests.live_versions $(ARGS)

venv: $(OURS)

# torch first and by itself, then the lock with --no-deps: requirements/serve.lock says why.
$(SERVE):
	@command -v $(PYTHON) >/dev/null \
		|| { echo 'error: no $(PYTHON); install Python 3.11 or newer' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "error: $$($(PYTHON) --version) is too old;" \
			'use 3.11 or newer: make PYTHON=python3.12 ...' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo 'error: $(PYTHON) cannot make an environment;' \
			'install python3-venv' >&2; exit 1; }
	@echo 'Setting up $(VENV): torch and vLLM for the CPU, a few minutes and gigabytes.'
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --requirement requirements/torch.txt
	@$(PIP) --no-deps --requirement requirements/serve.lock
	@touch $@

# The build tool is the one that torch brought.
$(OURS): $(SERVE) pyproject.toml plugins/glyphocr/pyproject.toml
	@$(PIP) --no-deps --no-build-isolation --editable . --editable plugins/glyphocr
	@touch $@

$(DEV): $(OURS)
	@$(PIP) --no-deps --requirement requirements/dev.lock
	@rm -rf $(VENV)/triton
	@$(PIP) --no-deps --requirement requirements/triton.txt --target $(VENV)/triton
	@touch $@

clean:
	rm -rf $(VENV) build .contract .versions .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
