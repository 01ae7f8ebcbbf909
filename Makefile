# `make help` lists everything. Each target makes the virtual environment it needs.
VENV := .venv
PY := $(VENV)/bin/python
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# A third of a process's start is compiling our own modules: tests start a hundred.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo lint test

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

$(STAMP): requirements.lock pyproject.toml
	@test -x $(PY) || python3 -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . 2>/dev/null || $(PY) -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

demo: $(STAMP) ## the story of some VMs that want GPUs, from a running embedded system (a minute at most)
	@$(BIN)/gpubinder demo $(if $(CI),--fast)

lint: $(STAMP) ## ruff, mypy strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: $(STAMP) ## the fast tests: unit tables, properties, contracts on simulator and embedded Redis
	$(BIN)/pytest -m "not envtest and not kubevirt and not sim" -n auto --maxprocesses 4 --dist loadfile

.PHONY: sim
SEEDS ?= 200
FROM ?= 1
sim: $(STAMP) ## lives of whole clusters with faults and crashes, by seed: SEEDS=n FROM=first
	@$(PY) -m tests.sim --seeds $(SEEDS) --from $(FROM) --crashes
	$(BIN)/pytest -m sim tests/sim -n auto --maxprocesses 4

.PHONY: crds
crds: $(STAMP) ## write deploy/crds, deploy/admission and deploy/rbac from code
	@$(PY) -m gpubinder.crd_files deploy

.PHONY: envtest envtest-assets
envtest-assets: $(STAMP) ## build the real control plane's binaries into a per-user cache (or use KUBEBUILDER_ASSETS)
	@$(PY) -m tests.cluster assets

envtest: $(STAMP) ## the contract suite and the stories on a real control plane (without binaries: skips, fails in CI)
	@$(PY) -m tests.cluster assets || test "$$CI" != true
	$(BIN)/pytest -m envtest

.PHONY: kubevirt
kubevirt: $(STAMP) ## the stories with KubeVirt's own virt-controller, built from a checkout (KUBEVIRT_SRC=folder)
	@KUBEVIRT_SRC="$(KUBEVIRT_SRC)" $(PY) -m tests.kubevirt build
	@$(PY) -m tests.cluster assets
	KUBEVIRT_SRC="$(KUBEVIRT_SRC)" $(BIN)/pytest -m kubevirt tests/kubevirt

.PHONY: bench
bench: $(STAMP) ## speeds as ratios in one run, as a table
	@$(PY) -m bench

.PHONY: storm
SECONDS ?= 300
storm: envtest-assets ## three binders on a real control plane while everything is killed (SECONDS=300)
	@$(PY) -m tests.stories.storm --seconds $(SECONDS)

.PHONY: mutants
mutants: $(STAMP) ## how many mutants of binder/core no test notices; MODULES="moving settling", JSON=file (half an hour or more)
	@nice -n 15 $(PY) -m tests.mutants $(MODULES) $(if $(JSON),--json $(JSON))
