SHELL := bash
.SHELLFLAGS := -o pipefail -c
# Every target sets itself up: the virtual environment is rebuilt when the lock or pyproject.toml changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One more than the two cores that this is meant for: many tests wait, for a server or a deadline of theirs.
PYTEST_WORKERS ?= 3

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

# The lock is whole, so nothing is resolved (--no-deps), and `pip check` proves that it is: the pip of Python 3.11 else asks an index about
# `coverage[toml]`, is told of a newer one than the lock's, and refuses it.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("HTAS needs Python 3.11 or newer; set PYTHON=python3.x") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m pip --disable-pip-version-check check
	@touch $@

.PHONY: setup
setup: $(STAMP) ## create the virtual environment from the hashed lock

.PHONY: demo
demo: $(STAMP) ## run a day of mixed work in the sandbox, in about a minute
	$(BIN)/htas demo

# Where the environment forbids bytecode, each worker would compile all tests anew, which is 9 of the 14 s that it takes to find
# them, and so would each program that a test starts all of htas. Empty is as good as not set.
.PHONY: test
test: export PYTHONDONTWRITEBYTECODE :=
test: $(STAMP) ## unit tables, laws, stories and contracts (needs only Python packages)
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) -rRfE tests/corpus tests/stories tests/laws tests/contracts tests/unit

.PHONY: test-real
test-real: $(STAMP) ## stories on a real API server, real nodes, OpenStack and Cassandra (needs Go and, on Debian, root; the first time 15 minutes)
	tools/testenv/openstack-packages.sh
	tools/testenv/cassandra-packages.sh
	tools/testenv/kube-build.sh
	tools/testenv/helm-build.sh
	tools/testenv/nodes-packages.sh
	tools/testenv/image-packages.sh
	tools/testenv/browser-packages.sh
	$(MAKE) --jobs=4 test-real-clouds test-real-nodes test-real-clusters test-real-rest

# Four parts beside each other, of 20 to 45 minutes on two cores: most of the time is spent waiting for machines to come and go. Each
# has a control plane of its own. Each line says of which part it is. What is not named is in the clusters' part.
# A story that fails is told once more: real leases, controllers and clouds race on two cores. Both times are in the output (RERUN), and
# what fails twice has failed. Of stories with many cases (kill points, page sizes) some run each day: HTAS_TURN=all runs them all.
STORY := -vv --durations=15 --reruns 1 -rRfE
CLOUDS := $(wildcard tests/real/test_openstack*.py)
NODES := $(wildcard tests/real/test_migration*.py) $(addprefix tests/real/test_,image.py checkpoint_images.py replace.py)
REST := $(wildcard tests/real/test_cassandra*.py) tests/browser $(addprefix tests/real/test_,kill.py rearranging.py)

.PHONY: test-real-clouds test-real-nodes test-real-clusters test-real-rest
test-real-clouds: ## OpenStack
	$(BIN)/python -m pytest $(STORY) $(CLOUDS) | sed -u 's/^/clouds: /'
test-real-nodes: ## real kubelets, containerd and CRIU
	$(BIN)/python -m pytest $(STORY) $(NODES) | sed -u 's/^/nodes: /'
test-real-clusters: ## Kubernetes with KWOK's nodes
	$(BIN)/python -m pytest $(STORY) tests/real $(addprefix --ignore=,$(CLOUDS) $(NODES) $(REST)) | sed -u 's/^/clusters: /'
test-real-rest: ## Cassandra, the pages in a browser, and the daemon killed at each of its steps
	$(BIN)/python -m pytest $(STORY) $(REST) | sed -u 's/^/rest: /'

# What depends on the API server's release: objects and rights, promises, leases, admission. 1.36 is in test-real.
KUBE ?= 1.37
SHORT := $(addprefix tests/real/test_,contracts.py promises.py two_daemons.py initialization.py handing_back.py hostile_namespace.py)
.PHONY: test-kube
test-kube: $(STAMP) ## the short stories on another release of Kubernetes: KUBE=1.35 (needs Go; the first time 10 minutes)
	eval "$$(tools/testenv/kube-build.sh $(KUBE))" && $(BIN)/python -m pytest $(STORY) $(SHORT)

.PHONY: screenshots
screenshots: $(STAMP) ## every page at three widths, light and dark, in out/screenshots; and the documentation's pictures (needs root on Debian once)
	tools/testenv/browser-packages.sh
	$(BIN)/python -m tools.screenshots
	$(BIN)/python -m tools.story docs/pictures

.PHONY: docs
docs: $(STAMP) ## the documentation as a site in out/site; too many words or a link that leads nowhere is an error
	$(BIN)/python -m tools.site.measure
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

.PHONY: check
check: $(STAMP) ## ruff, mypy --strict, the import contracts, what nothing uses, and sizes that may only go down
	$(BIN)/ruff check htas tests tools
	$(BIN)/ruff format --check htas tests tools
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/vulture
	$(BIN)/python -m tools.ratchet

.PHONY: bench
bench: $(STAMP) ## plan time and memory at 1k, 10k and 100k pending pods, and with 100 flavours
	$(BIN)/python -m tools.bench.plan
	$(BIN)/python -m tools.bench.many_flavours --sizes 100 --seeds 1

SECONDS ?= 60
SEED ?= 1
.PHONY: fuzz
fuzz: $(STAMP) ## try spoiled dumps, events, configurations and requests: SECONDS=900 SEED=3
	$(BIN)/python -m tools.fuzz --seconds $(SECONDS) --seed $(SEED)

SAMPLE ?= 60
.PHONY: mutants
mutants: $(STAMP) ## break planning and execution at random places: does a test notice? SEED=4 SAMPLE=60
	$(BIN)/python -m tools.mutants --seed $(SEED) --sample $(SAMPLE)

.PHONY: format
format: $(STAMP) ## let ruff put the code in its form
	$(BIN)/ruff check --fix htas tests tools
	$(BIN)/ruff format htas tests tools

.PHONY: lock
lock: ## renew the locks, for development and for the image, from pyproject.toml (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --group dev -o requirements.lock pyproject.toml
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --constraint requirements.lock --extra cassandra -o deploy/requirements.lock pyproject.toml

.PHONY: chart
chart: $(STAMP) ## renew the chart's schema and README from the code, and the plain manifests (needs Go, the first time)
	$(BIN)/python -m tools.chart
	HELM=$$(tools/testenv/helm-build.sh) deploy/render.sh

.PHONY: release
release: $(STAMP) ## wheel, sdist, chart, notes and checksums in out/release, with IMAGE=1 the image, too; publishes nothing
	$(BIN)/python -m tools.release $(if $(IMAGE),--image)

.PHONY: clean
clean: ## remove what the other targets made
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis out
