# Everything a developer does, by name. `make` lists it.
PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python -m
STAMP = $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup fix check test test-all test-numpy coverage torture gpu sanitize wheels sbom lock bench docs demo clean

help:  ## list what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): pyproject.toml CMakeLists.txt $(wildcard src/ilk/kernels/native/*) src/ilk/kernels/constants.py
	$(PYTHON) -m venv $(VENV)
	$(RUN) pip install --quiet --upgrade pip
	$(RUN) pip install --quiet -e '.[test,dev,docs]'
	touch $@

setup: $(STAMP)  ## virtual environment with ilk, its tests, checks and documentation tools

fix: setup  ## format and repair what can be repaired
	$(RUN) ruff format src tests benchmarks examples docs
	$(RUN) ruff check --fix src tests benchmarks examples docs

check: setup  ## lint, types, who may import whom
	$(RUN) ruff check src tests benchmarks examples docs
	$(RUN) ruff format --check src tests benchmarks examples docs
	$(RUN) mypy
	$(VENV)/bin/lint-imports

# Where a model meets the kernels; `make test-numpy` runs everything on the NumPy ones.
NUMPY_TESTS = tests/kernels tests/fitting tests/agreement \
	tests/families/test_gaussian.py tests/families/test_product.py \
	tests/estimators/test_kmeans.py tests/estimators/test_mixture.py

# One thread of linear algebra for each of the two workers: more would wait for each other.
test test-all test-numpy: export OPENBLAS_NUM_THREADS = 1

test: setup  ## the tests with the compiled kernels, and those of the kernels and models with the NumPy ones
	$(RUN) pytest -n 2 --dist loadgroup -m "not slow"
	ILK_KERNELS=numpy $(RUN) pytest -n 2 --dist loadgroup -m "not slow" $(NUMPY_TESTS)

test-all: setup  ## every test, the slow ones too, with the compiled kernels
	$(RUN) pytest -n 2 --dist loadgroup

test-numpy: setup  ## every test with the NumPy kernels; takes long
	ILK_KERNELS=numpy $(RUN) pytest -n 2 --dist loadgroup

# The tests that meet these folders; others would only take longer.
coverage: export OPENBLAS_NUM_THREADS = 1
coverage: setup  ## lines and branches of table, store, report and export that tests reach; takes long
	$(RUN) coverage run -m pytest -n 0 -q -m "not slow" $(COVERED)
	$(RUN) coverage report

COVERED = src/ilk/table src/ilk/store src/ilk/report src/ilk/export tests/table tests/sources tests/store tests/report tests/export \
	tests/cli tests/analysis tests/app tests/contracts tests/engines/test_draw.py tests/engines/test_frame_sample.py tests/engines/test_stream.py \
	tests/estimators/test_sparse.py tests/torture

HOURS ?=
MINUTES ?= $(if $(HOURS),$(shell expr $(HOURS) \* 60),10)

PARTS ?=
JOBS ?= 1

# Threads that wait for each other take longer than all that they do on small tables.
torture: export OPENBLAS_NUM_THREADS = 1
torture: export OMP_NUM_THREADS = 1
torture: setup  ## try to break it: MINUTES=10, or HOURS=8 before a release, PARTS="tables models", JOBS=2 processes; counts are added to those in docs/what-we-tried-to-break.md
	$(RUN) tests.torture $(MINUTES) docs/what-we-tried-to-break.md $(JOBS) $(PARTS)

# CI has no card: what can be told without one is in `make test`.
gpu: setup  ## on a machine with an NVIDIA Hopper card: kernels, rows, estimators, all tables against the CPU; sanitizers; the bench (torch)
	$(RUN) pytest -n 0 tests/kernels/gpu tests/engines/test_gpu.py tests/engines/test_gpu_tables.py
	for tool in memcheck racecheck; do compute-sanitizer --error-exitcode 9 --tool $$tool $(RUN) tests.kernels.gpu.small_tables || exit 9; done
	$(RUN) benchmarks.gpu

# Leaks are the interpreter's own; a report of either sanitizer ends the run. libstdc++ stands beside libasan so that
# exceptions are seen from the start; Python's own allocator would hide small arrays from it.
SANITIZED = build/sanitize
PRELOADED = $(shell $(CXX) -print-file-name=libasan.so) $(shell $(CXX) -print-file-name=libstdc++.so)
TABLES ?= 10000
CMAKE = PATH="$(abspath $(VENV))/bin:$$PATH" cmake

sanitize: setup  ## the kernels under ASan and UBSan: their tests, and TABLES=10000 random tables; takes long
	$(CMAKE) -S . -B $(SANITIZED) -DILK_SANITIZE=ON -DPython_EXECUTABLE=$(abspath $(VENV))/bin/python \
		-Dnanobind_DIR=$$($(RUN) nanobind --cmake_dir)
	$(CMAKE) --build $(SANITIZED) --parallel 2
	LD_PRELOAD="$(PRELOADED)" ASAN_OPTIONS=detect_leaks=0:halt_on_error=1 UBSAN_OPTIONS=print_stacktrace=1 \
		PYTHONMALLOC=malloc OPENBLAS_NUM_THREADS=1 \
		$(RUN) tests.kernels.sanitized $(SANITIZED)/_compiled*.so $(TABLES)

# What is built here runs on systems as new as this one; those of a release are built by .github/workflows/wheels.yml.
wheels: setup  ## source archive and a wheel of Linux, into dist; auditwheel says for which systems
	$(RUN) pip install --quiet build
	rm -rf dist build/wheels
	$(RUN) build --outdir build/wheels
	PATH="$(abspath $(VENV)/bin):$$PATH" $(RUN) auditwheel repair --wheel-dir dist build/wheels/*.whl
	cp build/wheels/*.tar.gz dist
	$(RUN) auditwheel show dist/*.whl

sbom: setup  ## what an installed ilk consists of, as CycloneDX, into dist
	mkdir -p dist
	$(VENV)/bin/python tools/sbom.py > dist/ilk.cdx.json

lock: setup  ## versions and hashes of everything that development uses, into requirements.lock
	$(VENV)/bin/python tools/lock.py

bench: setup  ## ilk and its peers on the same data, as ratios
	$(RUN) pip install --quiet -e '.[bench,spark,app]'
	$(RUN) benchmarks
	$(RUN) benchmarks.stream
	$(RUN) benchmarks.reading
	$(RUN) benchmarks.spark
	$(RUN) benchmarks.page

docs: setup  ## the documentation, into build/docs; a warning is an error
	$(RUN) sphinx -W --keep-going -q -j auto docs build/docs

demo: setup  ## the main job on a bundled table
	$(VENV)/bin/ilk demo

clean:  ## remove what was made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
