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
RESULTS := build/test-results
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

cpp_inputs := $(shell find src CMakeLists.txt pyproject.toml -type f 2>/dev/null)
cmake_inputs := CMakeLists.txt CMakePresets.json pyproject.toml

.PHONY: help
help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# --- environments: a stamp per environment, newer than the file that lists its packages ---

.PHONY: deps deps-tensorflow
deps: $(VENV)/.packages  ## the Python environment with every build and test tool
deps-tensorflow: $(TF_VENV)/.packages  ## TensorFlow's environment

$(VENV)/.packages: tools/requirements-dev.txt tools/make_venv
	PYTHON="$(PYTHON)" tools/make_venv $(VENV) $<
	touch $@

$(TF_VENV)/.packages: tools/requirements-tensorflow.txt tools/make_venv
	PYTHON="$(PYTHON)" tools/make_venv $(TF_VENV) $<
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

# Both environments get the package from one build tree as an editable install: the compiled half and the
# programs are put into the environment, Python files are used from where they are.
build/editable/.built: $(VENV)/.packages $(cpp_inputs)
	rm -rf build/editable
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) tools/editable_wheel.py build/editable build/python
	touch $@

$(VENV)/.pardnn: build/editable/.built
	python -m pip install --quiet --no-deps --force-reinstall build/editable/*.whl
	touch $@

$(TF_VENV)/.pardnn: $(TF_VENV)/.packages build/editable/.built
	$(TF_VENV)/bin/python -m pip install --quiet --no-deps --force-reinstall build/editable/*.whl
	touch $@

.PHONY: python-tensorflow
python-tensorflow: $(TF_VENV)/.pardnn  ## install pardnn into build/venv-tensorflow

.PHONY: clean
clean:  ## remove what was built, keep the environments
	find build -mindepth 1 -maxdepth 1 ! -name 'venv*' -exec rm -rf {} +
	rm -f build/venv*/.pardnn
