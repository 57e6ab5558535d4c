# make test and make demo work on a machine with Python 3.11 or newer, a compiler and package managers.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
JOBS ?= $(shell nproc)
TORCH ?= 2.13.0
# Versions of all else that is installed; make LOCK= takes the newest. Written by make lock.
LOCK ?= constraints.txt
PIP_ARGS ?=
PYTEST_ARGS ?=
FUZZ_SECONDS ?= 30
BASE ?= 169c54f
FAULTS_ARGS ?=
PROGRAMS ?= 3000

VENV := .venv
PY := $(VENV)/bin/python
BUILD := build/python
CLIENTS := build/clients
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export CXX
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Installed packages are compiled when they are first imported. Without what that leaves behind, each process that imports
# transformers takes ten seconds more.
unexport PYTHONDONTWRITEBYTECODE
PINNED = torch==$(TORCH:torch==%=%)
PACKAGES = $(if $(LOCK),-c $(LOCK)) $(PIP_ARGS) -q
INSTALL = $(PY) tools/install_packages.py $(PACKAGES)

CPP_FILES = $(shell find src python/modelport/binding tools examples -name '*.cc' -o -name '*.h')

.PHONY: help test demo build torch-free-rooms first-import check lint format start side-by-side cpp-with-torch build-cpp test-cpp build-torch test-torch test-every-python test-python test-clients test-imports test-zoo test-faults bench-capture bench-onnx bench-generate bench-llm bench-encoders bench-quantize bench-methods bench-fleet bench-build fuzz fuzz-models tidy tidy-changed \
  support api picture site clean setup wheel test-versions lock

help:
	@echo "make test           set up, build, run every check and test"
	@echo "make demo           set up, build, run examples/demo.py"
	@echo "make build          set up, build the extension into $(VENV)"
	@echo "make check          the checks without tests: rooms, sizes, ruff, mypy, clang-format"
	@echo "make lint           make check and clang-tidy on every file"
	@echo "make tidy-changed   clang-tidy on the files that differ from main"
	@echo "make format         rewrite the sources in the house format"
	@echo "make test-cpp       C++ tests of the torch-free rooms, under sanitizers"
	@echo "make test-torch     C++ tests of the rooms that need libtorch"
	@echo "make test-python    pytest; one test: make test-python PYTEST_ARGS='-k name'"
	@echo "make test-clients   what we write in onnxruntime-genai, transformers.js and a browser"
	@echo "make test-zoo       every model of the zoo in every format, each archive loaded by torch; make test has a sample"
	@echo "make test-imports   the files of every model of the zoo with quick imports and without, byte for byte"
	@echo "make test-faults    exports that are killed, meet full disks or each other: OUT is the old artifact or the new one"
	@echo "make test-versions  a part of the zoo on the oldest and the newest torch and transformers; writes docs/COMPATIBILITY.md"
	@echo "make wheel          a wheel in dist/ for one torch: make wheel TORCH=2.15.0"
	@echo "make lock           write constraints.txt and tests/clients/package-lock.json anew, of what $(VENV) has"
	@echo "make fuzz           libFuzzer on every fuzz target for FUZZ_SECONDS each (needs clang)"
	@echo "make fuzz-models    PROGRAMS random small models: every way to run them against eager, inside limits and outside"
	@echo "make bench-capture  the numbers of capture and .pt2 next to transformers.exporters"
	@echo "make bench-onnx     the numbers of ONNX next to transformers.exporters and onnxruntime-genai"
	@echo "make bench-generate export for generation next to transformers.exporters, tokens per second next to genai"
	@echo "make bench-llm      language models for onnxruntime next to genai's builder: export, memory, speed; then bench-encoders"
	@echo "make bench-encoders encoders in onnxruntime, fp32 and int8, next to what its transformers optimizer makes of torch's files"
	@echo "make bench-executorch  ExecuTorch programs next to transformers.exporters and optimum-executorch (LAYERS=2 is quicker)"
	@echo "make bench-quantize weights in 4 bits: time and error next to torchao"
	@echo "make bench-methods  what the demo model loses in 4 bits, by each way to choose codes"
	@echo "make bench-fleet    exports a minute of every model of the zoo in every format, next to transformers.exporters"
	@echo "make bench-build    how long builds, demo and tests take from nothing, builds next to another commit (BASE=...); fails if a goal is missed"
	@echo "make site           docs/ as a site, in build/site"
	@echo "make support        write docs/SUPPORT.md anew"
	@echo "make api            write docs/api.md anew"
	@echo "make picture        make the picture of README anew"
	@echo "make clean          remove build/ and $(VENV)"

# --- set-up: each step leaves a stamp, so that it runs once ---------------------------------------------------------

setup: $(VENV)/.packages
	$(call done,set-up)

# The system's packages and those of Python, side by side unless Python wants one of the system's to make an environment.
$(VENV)/.system: tools/system_packages.sh pyproject.toml tools/list_requirements.py $(LOCK)
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || tools/system_packages.sh $(PYTHON)
	@mkdir -p $(VENV)
	@$(MAKE) --no-print-directory --jobs=2 $(VENV)/.installed $(VENV)/.environment
	touch $@

$(VENV)/.installed: tools/system_packages.sh
	tools/system_packages.sh $(PYTHON)
	touch $@

# uv installs all that follows.
$(VENV)/.environment: pyproject.toml tools/list_requirements.py $(LOCK)
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) tools/list_requirements.py tools > $(VENV)/tools.txt
	$(PY) -m pip install --no-compile $(PACKAGES) -r $(VENV)/tools.txt
	touch $@

# What compiles the C++ that needs no torch: cmake, ninja, and the schemas in the package of ExecuTorch.
$(VENV)/.tools: $(VENV)/.system tools/install_packages.py
	$(PY) tools/list_requirements.py executorch > $(VENV)/executorch.txt
	$(INSTALL) --no-deps -r $(VENV)/executorch.txt
	touch $@

# After the tools, so that no two installers write at once.
$(VENV)/.torch: $(VENV)/.system | $(VENV)/.tools
	@echo "installing torch (hundreds of megabytes)"
	$(INSTALL) $(PINNED) numpy
	touch $@

# What a build and the demo need, and what the tests need on top.
$(VENV)/.run: $(VENV)/.torch pyproject.toml tools/list_requirements.py $(LOCK)
	$(PY) tools/list_requirements.py run > $(VENV)/run.txt
	$(INSTALL) -r $(VENV)/run.txt $(PINNED)
	touch $@

$(VENV)/.packages: $(VENV)/.run
	tools/system_packages.sh $(PYTHON) node
	$(PY) tools/list_requirements.py > $(VENV)/requirements.txt
	$(INSTALL) -r $(VENV)/requirements.txt $(PINNED)
	touch $@

# --- build ----------------------------------------------------------------------------------------------------------

# An editable install, built in a folder that stays: a second run compiles only what changed. A first one compiles what
# does not see torch while torch is unpacked.
build: $(VENV)/.tools
	$(call begin,extension)
	@test -e $(VENV)/.run -o -e $(BUILD)/CMakeCache.txt || \
	  $(MAKE) --no-print-directory --jobs=3 torch-free-rooms first-import
	@$(MAKE) --no-print-directory $(VENV)/.run
	$(PY) tools/show_build.py $(BUILD)/log.txt \
	  $(PY) -m pip install -v --no-build-isolation --no-deps -e . -Cbuild-dir=$(BUILD)
	$(call done,extension)

# Python compiles packages when they are first imported: that is for the core which waits for the other one's last file.
first-import: $(VENV)/.run
	nice -n 19 $(PY) -c 'import onnxruntime, torch, transformers.models.qwen3.modeling_qwen3'

# In the extension's folder and with its compiler, so that its build finds these objects.
torch-free-rooms: $(VENV)/.tools
	cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DPython_EXECUTABLE=$(abspath $(PY))
	cmake --build $(BUILD)

# For any torch of 2.11 to 2.15, in an environment of its own. The wheel says which: modelport-0.1.0+torch2.15-....whl
wheel: $(VENV)/.system
	PIP_ARGS='$(PIP_ARGS)' $(PY) tools/build_wheel.py $(TORCH)

build-cpp: $(VENV)/.tools
	$(call begin,C++ under sanitizers)
	cmake --preset dev
	cmake --build --preset dev
	$(call done,C++ under sanitizers)

# The same folder with the tests of what sees torch; the objects of the extension serve both.
build-torch: build
	$(call begin,C++ tests with torch)
	cmake $(BUILD) -DBUILD_TESTING=ON -DMODELPORT_TORCH_TESTS_ONLY=ON
	cmake --build $(BUILD)
	$(call done,C++ tests with torch)

# --- checks and tests -----------------------------------------------------------------------------------------------

# Each step says when it began and when it was done, and the end of a test run says where the minutes went.
begin = @mkdir -p build && echo "$$(date +%s) > $(1)" >> build/steps.txt
done = @mkdir -p build && echo "$$(date +%s) $(1)" >> build/steps.txt

test: start side-by-side test-every-python
	@$(PY) tools/show_minutes.py build/steps.txt
	@echo "all checks and tests passed"

# Gigabytes are fetched and unpacked while the compiler runs, and no core waits for the last file of one build before the
# next begins. Each prints when it is through.
side-by-side:
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target \
	  check test-cpp tidy-changed cpp-with-torch $(CLIENTS)/.packages

cpp-with-torch: setup
	@$(MAKE) --no-print-directory test-torch

start:
	@rm -f build/steps.txt
	$(call done,start)

check: setup
	$(call begin,checks)
	$(PY) tools/check_rooms.py
	$(PY) tools/check_size.py
	ruff check .
	ruff format --check .
	mypy -p modelport
	@echo "clang-format on every file"
	@clang-format --dry-run -Werror $(CPP_FILES)
	$(call done,checks)

# All files take minutes (make tidy); a change takes seconds.
tidy-changed: setup
	$(call begin,clang-tidy of what changed)
	$(PY) tools/tidy_changed.py
	$(call done,clang-tidy of what changed)

test-cpp: build-cpp
	$(call begin,C++ tests)
	ctest --preset dev
	$(call done,C++ tests)

test-torch: build-torch
	$(call begin,C++ tests with torch)
	ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j $(JOBS)
	$(call done,C++ tests with torch)

# One thread a worker: there are as many workers as cores, and threads that wait for each other only slow tiny models.
test-every-python test-python test-clients: export OMP_NUM_THREADS := 1

test-python: setup build
	$(PY) -m pytest -n $(JOBS) --dist worksteal --ignore=tests/clients $(PYTEST_ARGS)
	$(call done,pytest)

# Both of the others at once, after all that is built side by side: workers take half a minute to start, and wait for the
# last of them at the end. One more than there are cores, because some tests wait: for a browser, for processes to die.
test-every-python:
	$(call begin,pytest)
	$(PY) -m pytest -n $$(($(JOBS) + 1)) --dist worksteal $(PYTEST_ARGS)
	$(call done,pytest)

# What `make test` has a sample of, chosen by tests/zoo/sample.py.
test-zoo: setup build
	WHOLE_ZOO=1 OMP_NUM_THREADS=1 $(PY) -m pytest -n $(JOBS) --dist worksteal $(PYTEST_ARGS) \
	  tests/zoo_test.py tests/zoo_onnx_test.py tests/inputs/example_inputs_test.py tests/generation/zoo_*_test.py

test-faults: setup build
	OMP_NUM_THREADS=1 $(PY) tests/faults.py $(FAULTS_ARGS)

# What is exported, byte for byte, with quick imports and without: minutes, so that `make test` has a sample of it.
test-imports: setup build
	$(PY) tests/quick_imports/zoo_files.py --jobs $(JOBS)

# Gigabytes of packages and two builds: not a part of `make test`. One pair: make test-versions PAIR=oldest
test-versions: $(VENV)/.system
	PIP_ARGS='$(PIP_ARGS)' $(PY) tools/try_versions.py $(if $(PAIR),--pair $(PAIR))

test-clients: setup build $(CLIENTS)/.packages
	$(PY) -m pytest -n $(JOBS) --dist worksteal $(PYTEST_ARGS) tests/clients
	$(call done,clients)

# The install scripts of the packages would only fetch libraries for GPUs. After the others, which install with apt, too.
$(CLIENTS)/.packages: $(VENV)/.system tests/clients/package.json tests/clients/package-lock.json | $(VENV)/.packages
	tools/system_packages.sh $(PYTHON) chromium
	mkdir -p $(CLIENTS)
	cp tests/clients/package.json tests/clients/package-lock.json $(CLIENTS)
	npm ci --prefix $(CLIENTS) --no-audit --no-fund --ignore-scripts --silent
	touch $@

demo: build
	$(PY) examples/demo.py

bench-capture: setup build
	$(PY) bench/bench_capture.py

bench-onnx: build $(VENV)/.bench
	$(PY) bench/bench_onnx.py

bench-generate: build $(VENV)/.bench
	$(PY) bench/bench_generate.py

# Both run, whatever the first one misses.
bench-llm: build $(VENV)/.bench
	missed=0; $(PY) bench/bench_llm.py || missed=$$?; $(PY) bench/bench_encoders.py && exit $$missed

bench-encoders: build $(VENV)/.bench
	$(PY) bench/bench_encoders.py

bench-quantize: build
	$(PY) -m pip install $(PIP_ARGS) -q --no-deps torchao==0.18.0
	$(PY) bench/bench_quantize.py

bench-methods: build
	$(PY) bench/bench_methods.py

# ExecuTorch's own compiler, which the peer uses, needs all that its wheel asks for (pip install executorch==1.5.1): without
# it the peer fails in that format, which is its slowest, and is counted without it.
bench-fleet: build $(VENV)/.bench
	$(PY) bench/bench_fleet.py

# The peer needs all that its wheel asks for; we need the wheel alone.
bench-executorch: build
	$(PY) tools/install_packages.py $(PIP_ARGS) -q executorch==1.5.1
	$(PY) bench/bench_executorch.py
	$(PY) bench/bench_planning.py
	$(PY) bench/bench_executorch_llm.py $(if $(LAYERS),--layers $(LAYERS))

bench-build: setup
	$(PY) bench/bench_build.py $(BASE)

$(VENV)/.bench: $(VENV)/.packages
	$(PY) tools/list_requirements.py bench > $(VENV)/bench.txt
	$(PY) tools/install_packages.py $(PIP_ARGS) -q -r $(VENV)/bench.txt
	touch $@

# --- upkeep ---------------------------------------------------------------------------------------------------------

format: setup
	ruff check --fix .
	ruff format .
	clang-format -i $(CPP_FILES)

lint: check tidy

tidy: setup
	cmake --workflow --preset tidy

# After an upgrade of what is in $(VENV): make setup LOCK= PIP_ARGS=-U, make test, make lock.
lock: setup
	$(PY) tools/lock.py

support: setup build
	$(PY) tools/support_table.py

api: setup
	$(PY) tools/api_page.py

site: setup
	$(PY) tools/build_site.py
	@echo "build/site/index.html"

picture: setup build $(CLIENTS)/.packages
	$(PY) tools/take_picture.py

fuzz: setup
	tools/fuzz.sh $(FUZZ_SECONDS)
	cmake --preset dev
	cmake --build --preset dev --target shape_test
	MODELPORT_CASES=20000 build/dev/src/shape_test

fuzz-models: build
	PYTHONPATH=tools $(PY) -m fuzz_models --programs $(PROGRAMS) --jobs $(JOBS)

clean:
	rm -rf build $(VENV)
