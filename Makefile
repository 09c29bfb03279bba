# laconic's commands. `make` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help install test demo lint bench rate encoders auto loader clean

help:  ## List these commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(INSTALLED)  ## Make .venv with laconic and all it is developed with

# torch first: what is installed satisfies everything that asks for "torch" later.
$(INSTALLED): pyproject.toml constraints.txt CMakeLists.txt $(wildcard native/*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(PIP) --editable '.[dev]'
	touch $@

test: $(INSTALLED)  ## Run the tests
	$(BIN)/python -m pytest

demo: $(INSTALLED)  ## Run the main job: a table here, and pictures in demo/index.html
	$(BIN)/laconic demo --out demo

lint: $(INSTALLED)  ## Check format, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(INSTALLED)  ## Measure the block codec again, and draw what was measured (about ten minutes)
	$(BIN)/laconic bench blocks --out results/blocks.json
	$(BIN)/laconic bench plot results/blocks.json --out results

rate: $(INSTALLED)  ## Measure the codecs with a bound beside their peers (FIELDS=... adds files; about five minutes)
	$(BIN)/laconic bench rate images $(FIELDS) --out results/rate.json
	$(BIN)/laconic bench plot results/rate.json --out results
	$(BIN)/python -m tests.test_docs >/dev/null

encoders: $(INSTALLED)  ## Measure encoders on dumped embedding look-ups (DUMPS="files or folders"; under a minute)
	@test -n "$(DUMPS)" || { echo 'Name the dumps: make encoders DUMPS="dumps/"'; exit 2; }
	$(BIN)/laconic bench encoders $(DUMPS) --pad 1,32,128 --out results/encoders.json
	$(BIN)/laconic bench plot results/encoders.json --out results
	$(BIN)/python -m tests.test_docs >/dev/null

auto: $(INSTALLED)  ## Hold the encoder auto against all others (DATA="files" adds tensors; about two minutes)
	LACONIC_COSTS=src/laconic/encoders/costs.json $(BIN)/laconic bench auto $(DATA) --out results/auto.json

loader: $(INSTALLED)  ## Measure samples a second from disk, packed and beside raw files (FOLDER=... on the disk to measure)
	$(BIN)/laconic bench loader $(if $(FOLDER),--folder $(FOLDER)) --out results/loader.json
	$(BIN)/laconic bench plot results/loader.json --out results

clean:  ## Remove everything that was built
	rm -rf $(VENV) build dist demo src/laconic/backends/native/_core*.so
