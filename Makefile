# `make demo` and `make test` are all a newcomer needs: each first installs into $(VENV) whatever it lacks.

VENV ?= .venv
PYTHON ?=
ARGS ?=

BIN := $(VENV)/bin
APP := $(VENV)/.app
DEV := $(VENV)/.dev

.DEFAULT_GOAL := help
.PHONY: help demo test test-long check gpu gpu-code clean

help: ## list these targets
	@echo "make demo ARGS='...'  options go to 'chunkscope demo'; PYTHON=... chooses the interpreter"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(APP) ## three scheduling policies on one workload, measured on a real model (3 minutes)
	@$(BIN)/python -m ui demo $(ARGS)

test: check ## every check, then the tests (5 minutes)
	@$(BIN)/python -m pytest -m "not long" $(ARGS)

test-long: $(DEV) ## all tests, with larger counts (an hour or more)
	@CHUNKSCOPE_TEST_LONG=1 $(BIN)/python -m pytest $(ARGS)

check: $(DEV) ## lint, format, types, import rules
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

gpu: ## check and measure kernels and engine on this machine's GPU (under 10 minutes)
	@benchmarks/gpu.sh $(ARGS)

gpu-code: $(DEV) ## compile every kernel for sm_80, sm_90 and sm_100; tabulate registers and shared memory
	@$(BIN)/python benchmarks/gpu_code.py $(ARGS)

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(APP): pyproject.toml constraints.txt .ci/venv.sh
	@PYTHON="$(PYTHON)" .ci/venv.sh $(VENV) app
	@touch $@

$(DEV): $(APP)
	@.ci/venv.sh $(VENV) dev
	@touch $@
