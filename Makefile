# Two commands do all the set-up on a machine with a C++20 compiler, make and Python 3.11 or newer:
# `make demo` shows the main job, `make test` runs every test. `make help` lists the rest.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

VENV := build/venv
TF_VENV := build/venv-tensorflow
TORCH_VENV := build/venv-torch
QUALITY_VENV := build/venv-quality
RESULTS := build/test-results
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

cpp_inputs := $(shell find src CMakeLists.txt pyproject.toml -type f 2>/dev/null)
cmake_inputs := CMakeLists.txt CMakePresets.json pyproject.toml

.PHONY: help
help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# --- environments: a stamp per environment, newer than the file that lists its packages ---

.PHONY: deps deps-tensorflow deps-torch
deps: $(VENV)/.packages  ## the Python environment with every build and test tool
deps-tensorflow: $(TF_VENV)/.packages  ## TensorFlow's environment
deps-torch: $(TORCH_VENV)/.packages  ## PyTorch's environment

$(VENV)/.packages: tools/requirements-dev.txt tools/make_venv
	PYTHON="$(PYTHON)" tools/make_venv $(VENV) $<
	touch $@

$(TF_VENV)/.packages: tools/requirements-tensorflow.txt tools/make_venv
	PYTHON="$(PYTHON)" tools/make_venv $(TF_VENV) $<
	touch $@

$(TORCH_VENV)/.packages: tools/requirements-torch.txt tools/make_venv
	PYTHON="$(PYTHON)" tools/make_venv $(TORCH_VENV) $<
	touch $@

$(QUALITY_VENV)/.packages: bench/quality/requirements.txt tools/make_venv
	PYTHON="$(PYTHON)" tools/make_venv $(QUALITY_VENV) $<
	touch $@

# --- building ---

.PHONY: build dev python
build: $(VENV)/.packages  ## the program, build/pardnn
	cmake --preset release --log-level=WARNING
	cmake --build --preset release --parallel $(JOBS)
	ln -sf release/pardnn build/pardnn

dev: $(VENV)/.packages  ## the unit tests' program, build/dev/pardnn_tests
	cmake --preset dev --log-level=WARNING
	cmake --build --preset dev --parallel $(JOBS)

python: $(VENV)/.pardnn  ## install pardnn into build/venv; edits of Python files need no second time

# All environments get the package from one build tree as an editable install: the compiled half and the
# programs are put into the environment, Python files are used from where they are.
build/editable/.built: $(VENV)/.packages $(cpp_inputs)
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) tools/editable_wheel.py build/editable build/python
	touch $@

$(VENV)/.pardnn: build/editable/.built
	python -m pip install --quiet --no-deps --force-reinstall build/editable/*.whl
	touch $@

$(TF_VENV)/.pardnn: $(TF_VENV)/.packages build/editable/.built
	$(TF_VENV)/bin/python -m pip install --quiet --no-deps --force-reinstall build/editable/*.whl
	touch $@

$(TORCH_VENV)/.pardnn: $(TORCH_VENV)/.packages build/editable/.built
	$(TORCH_VENV)/bin/python -m pip install --quiet --no-deps --force-reinstall build/editable/*.whl
	touch $@

.PHONY: python-tensorflow python-torch
python-tensorflow: $(TF_VENV)/.pardnn  ## install pardnn into build/venv-tensorflow
python-torch: $(TORCH_VENV)/.pardnn  ## install pardnn into build/venv-torch

# --- tests: each runner leaves NAME.xml and NAME.status in build/test-results, summed at the end ---

.PHONY: test test-core test-tensorflow test-torch test-long
test:  ## build and run every test
	@$(call run_and_sum,unit properties core wheel tensorflow torch)

test-core:  ## every test that needs no framework
	@$(call run_and_sum,unit properties core wheel)

test-tensorflow:  ## every test of the TensorFlow adapter
	@$(call run_and_sum,tensorflow)

test-torch:  ## every test of the PyTorch adapter
	@$(call run_and_sum,torch)

test-long:  ## the tests that take longer than `make test` may
	@$(call run_and_sum,core-long tensorflow-long torch-long)

# A runner that cannot be built must not keep the others from running: it has no results, and that is a failure.
run_and_sum = rm -rf $(RESULTS); \
	$(MAKE) --no-print-directory --keep-going $(addprefix run-,$(1)) || true; \
	$(PYTHON) tools/sum_results.py $(RESULTS) $(1)

# Programs of the core environment come first on the path; the tests of a framework get its own environment's.
in_core := tools/run_tests $(RESULTS)
in_tensorflow := PATH="$(CURDIR)/$(TF_VENV)/bin:$$PATH" tools/run_tests $(RESULTS)
tensorflow_tests := python/tests/tensorflow tests/end_to_end/tensorflow
in_torch := PATH="$(CURDIR)/$(TORCH_VENV)/bin:$$PATH" tools/run_tests $(RESULTS)
torch_tests := python/tests/torch tests/end_to_end/torch
core_tests := tests python/tests --ignore=tests/wheel $(addprefix --ignore=,$(tensorflow_tests) $(torch_tests))

.PHONY: run-unit run-properties run-core run-core-long run-wheel run-tensorflow run-tensorflow-long run-torch run-torch-long
run-unit: dev
	$(in_core) unit build/dev/pardnn_tests

run-properties: dev
	$(in_core) properties build/dev/pardnn_properties

run-core: python
	$(in_core) core pytest -n $(JOBS) -m "not long" $(core_tests)

run-core-long: python
	$(in_core) core-long pytest -n $(JOBS) -m long $(core_tests) tests/wheel

run-wheel: python
	$(in_core) wheel pytest -m "not long" tests/wheel

run-tensorflow: python-tensorflow
	$(in_tensorflow) tensorflow pytest -m "not long" $(tensorflow_tests)

run-tensorflow-long: python-tensorflow
	$(in_tensorflow) tensorflow-long pytest -m long $(tensorflow_tests)

run-torch: python-torch
	$(in_torch) torch pytest -n $(JOBS) -m "not long" $(torch_tests)

run-torch-long: python-torch
	$(in_torch) torch-long pytest -m long $(torch_tests)

.PHONY: golden stress sanitize fuzz-readers bench-speed bench-quality bench-fidelity bench-overhead bench-torch bench-readers demo
golden: python  ## write the texts that the program is compared with anew; read what has changed
	PARDNN_REWRITE_GOLDEN=1 pytest --quiet tests/golden tests/bad_inputs

stress: $(VENV)/.packages  ## the property suite over a hundred thousand plans, or for STRESS_SECONDS=N
	cmake --preset stress --log-level=WARNING
	cmake --build --preset stress --parallel $(JOBS)
	PARDNN_STRESS=1 $(if $(STRESS_SECONDS),PARDNN_STRESS_SECONDS=$(STRESS_SECONDS)) \
	  build/stress/pardnn_properties --log_level=message

sanitize: $(VENV)/.packages  ## the unit tests under the address, undefined-behaviour and thread sanitizers
	for preset in asan tsan; do \
	  cmake --preset $$preset --log-level=WARNING; \
	  cmake --build --preset $$preset --parallel $(JOBS); \
	  build/$$preset/pardnn_tests; \
	done

FUZZ_SECONDS ?= 60
fuzz-readers: python  ## every reader of other programs' files for FUZZ_SECONDS=N, with seeds from FOLDER=…
	python -m pip install --quiet atheris==3.0.0
	for format in $$(python -c 'from pardnn import readers; print(*readers.formats())'); do \
	  python tests/fuzz/readers.py $$format $(if $(FOLDER),--seeds "$(FOLDER)") --keep build/fuzz/$$format \
	    -- -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=build/fuzz/ || exit 1; \
	done

bench-speed: $(VENV)/.packages  ## CPU seconds of the planner on large graphs
	cmake --preset release -DPARDNN_BENCH=ON --log-level=WARNING
	cmake --build --preset release --parallel $(JOBS) --target pardnn_bench
	python bench/speed/run.py build/release/pardnn_bench --json-out build/bench-speed.json

bench-quality: build python $(QUALITY_VENV)/.packages  ## steps of plans against bounds and optima; QUALITY_OPTIONS='--quick'
	python bench/quality/run.py $(QUALITY_OPTIONS) --json-out build/bench-quality.json
	$(QUALITY_VENV)/bin/python bench/quality/optimum.py --json-out build/bench-optimum.json
	cmake --preset release -DPARDNN_BENCH=ON --log-level=WARNING
	cmake --build --preset release --parallel $(JOBS) --target pardnn_exhaustive pardnn_favourites
	build/release/pardnn_exhaustive 400 200
	$(QUALITY_VENV)/bin/python bench/quality/favourites.py --json-out build/bench-favourites.json

bench-fidelity: python-tensorflow  ## predicted against measured peaks and steps of the examples
	$(TF_VENV)/bin/python bench/fidelity/run.py --json-out build/bench-fidelity.json

bench-overhead: python-tensorflow  ## one worker against an ordinary run: the step, and the start
	$(TF_VENV)/bin/python bench/overhead/run.py step --json-out build/bench-step.json
	$(TF_VENV)/bin/python bench/overhead/run.py start --json-out build/bench-start.json

bench-torch: python-torch  ## PyTorch: overhead, peaks, capture, two towers, tied weights, ops of a script
	for what in overhead peaks capture unrolled towers tied script; do \
	  $(TORCH_VENV)/bin/python bench/torch/run.py $$what --json-out build/bench-torch-$$what.json; \
	done

bench-readers: python  ## read the files that FOLDER/MANIFEST.tsv lists and compare counts, FOLDER=…
	python bench/readers/run.py --folder "$(FOLDER)" --json-out build/bench-readers.json

FRAMEWORK ?= tensorflow
demo: python-$(FRAMEWORK)  ## a model that does not fit one memory-limited worker trains over several; FRAMEWORK=torch
	PATH="$(CURDIR)/build/venv-$(FRAMEWORK)/bin:$$PATH" python tools/demo.py --framework $(FRAMEWORK)

# --- keeping order ---

.PHONY: lint format clean
lint: $(VENV)/.packages  ## layers, formats, linters, types
	tools/check

format: $(VENV)/.packages  ## rewrite C++ and Python files in the project's format
	find src tests \( -name '*.cc' -o -name '*.h' \) -print0 | xargs -0 clang-format -i
	ruff format --quiet .
	ruff check --quiet --fix --exit-zero .

clean:  ## remove what was built, keep the environments
	find build -mindepth 1 -maxdepth 1 ! -name 'venv*' -exec rm -rf {} +
	rm -f build/venv*/.pardnn
