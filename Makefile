# Everything runs in .venv, which is made on first use. `make help` lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
# Tools that build the extension; CMake and Ninja come from PyPI if the system has none.
BUILD_TOOLS := scikit-build-core nanobind \
	$(if $(shell command -v cmake),,cmake) $(if $(shell command -v ninja),,ninja)
NATIVE := CMakeLists.txt $(wildcard native/*.cpp native/*.h native/*.py native/*/*.cpp native/*/*.h)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test lint bench sanitize kernels torture clean

help:
	@echo 'make demo       relakit demo: generate a corpus, train, translate, align'
	@echo 'make test       lint, then run all tests'
	@echo 'make lint       ruff, mypy and the import rules'
	@echo 'make bench      quick benchmarks of attention, calls, training and decoding'
	@echo 'make sanitize   run the tests of the C++ kernels with memory checks'
	@echo 'make kernels    compare the C++ kernels with plain formulas, without Python'
	@echo 'make torture    kill commands at random moments and run them again; fuzz what is read'
	@echo 'make setup      only make .venv (the other targets do so when needed)'
	@echo 'make clean      remove .venv, build, dist, wheelhouse and all caches'
	@echo 'Another interpreter: make PYTHON=python3.12 ...'

setup: $(STAMP)

# Editable, so Python sources are used in place; new C++ or new dependencies cause a reinstall.
# --no-build-isolation uses the pinned build tools, and needs no network the second time.
$(STAMP): pyproject.toml constraints.txt $(NATIVE)
	@test -x $(BIN)/python || { echo 'Making $(VENV) ...'; $(PYTHON) -m venv $(VENV); }
	@echo 'Installing relakit and its dependencies into $(VENV) (a minute or two) ...'
	@$(PIP_INSTALL) $(BUILD_TOOLS)
	@$(PIP_INSTALL) --no-build-isolation -e '.[dev]'
	@$(BIN)/python -c 'import relakit._native' 2>/dev/null || echo \
		'Note: the C++ extension was not built. `$(BIN)/relakit doctor` says more.'
	@touch $@

demo: $(STAMP)
	@$(BIN)/relakit demo

# One thread per worker: two workers that each take all cores slow each other down.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# The benchmarks list peers that cannot be installed as missing, and measure relakit anyway.
bench: $(STAMP)
	@$(MAKE) --no-print-directory $(PEERS)/.installed || echo \
		'Note: the other toolkits could not be installed; they are left out.'
	@$(BIN)/relakit bench attention --quick
	@$(BIN)/python benchmarks/call_cost.py --rounds 9
	@$(BIN)/python benchmarks/training.py --quick --peer-python $(PEERS)/bin/python
	@$(BIN)/python benchmarks/decoding.py --quick --peer-python $(PEERS)/bin/python

# The toolkits that training and decoding are compared with; see benchmarks/peers/README.md.
# Not subject to constraints.txt: JoeyNMT's dependencies clash with ours.
PEERS := build/peers
$(PEERS)/.installed: benchmarks/peers/requirements.txt
	@test -x $(PEERS)/bin/python || { echo 'Making $(PEERS) ...'; $(PYTHON) -m venv $(PEERS); }
	@echo 'Installing JoeyNMT, Hugging Face Marian and CTranslate2 into $(PEERS) (minutes) ...'
	@$(PEERS)/bin/python -m pip install -qq --disable-pip-version-check -r $<
	@touch $@

# Memory errors and undefined behaviour in the kernels end the run. Python itself is not sanitized, so
# the sanitizers' libraries are loaded before it; what it leaves allocated at exit is not our concern.
# pytest must not capture stderr, because the report comes when the process ends.
SANITIZED := build/sanitize
SANITIZED_TESTS := tests/ops/native tests/nn/test_fused.py tests/nn/test_packed.py \
	tests/decode/test_native_engine.py tests/train/test_loss.py
SANITIZERS = $(foreach name,asan ubsan,$(shell $(CXX) -print-file-name=lib$(name).so))
CMAKE := $(if $(shell command -v cmake),cmake,$(BIN)/cmake)

sanitize: $(STAMP)
	@$(CMAKE) -S . -B $(SANITIZED) -DRELAKIT_SANITIZE=ON -DCMAKE_CXX_COMPILER=$(CXX) \
		-DPython_EXECUTABLE=$(abspath $(BIN)/python) \
		-Dnanobind_DIR=$$($(BIN)/python -m nanobind --cmake_dir)
	@$(CMAKE) --build $(SANITIZED)
	LD_PRELOAD='$(SANITIZERS)' ASAN_OPTIONS=detect_leaks=0 \
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 OMP_NUM_THREADS=1 PYTHONPATH=tests \
	RELAKIT_SANITIZED=$$(echo $(SANITIZED)/_native*.so) \
		$(BIN)/python -m pytest --capture=sys -p sanitized_extension $(SANITIZED_TESTS)

# For all instruction sets of this machine. tests/native/test_kernel_check.py does the same for ARM.
kernels: $(STAMP)
	@$(CMAKE) -S . -B build/check -DRELAKIT_KERNEL_CHECK=ON -DCMAKE_CXX_COMPILER=$(CXX)
	@$(CMAKE) --build build/check
	build/check/tests/native/kernel_check

# Takes minutes: 50 kills of each command, and 500 damaged inputs of each kind instead of 40.
torture: $(STAMP)
	OMP_NUM_THREADS=1 RELAKIT_FUZZ=500 $(BIN)/python -m pytest -n 0 tests/faults/test_fuzz.py
	$(BIN)/python tests/faults/torture.py

clean:
	rm -rf $(VENV) build dist wheelhouse
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests native examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + \
		2>/dev/null || true
