# `make` alone lists what there is to do. Everything sets itself up on first use.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

# uv comes from PyPI, by hash; the packages come from the lock file, by hash.
$(STAMP): requirements/uv.txt requirements/dev.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	touch $@

.PHONY: setup
setup: $(STAMP) ## create .venv and install what the lock files name

.PHONY: check
check: $(STAMP) ## lint and type-check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy operator tests e2e bench
	$(BIN)/lint-imports

.PHONY: go-programs
go-programs: $(STAMP) ## build the control plane's programs into a cache outside the checkout
	@$(BIN)/python e2e/build.py > /dev/null

.PHONY: test-programs
test-programs: go-programs # those of the oldest Kubernetes that is supported, too
	@$(BIN)/python e2e/build.py --oldest > /dev/null

.PHONY: cluster
cluster: go-programs ## start a control plane with example nodes; prints what to evaluate for KUBECONFIG
	@$(BIN)/python -m e2e.harness.local up

.PHONY: cluster-down
cluster-down: $(STAMP) ## stop the control plane of `make cluster`
	@$(BIN)/python -m e2e.harness.local down

.PHONY: test
test: $(STAMP) test-programs ## run every test, the real control plane included
	$(BIN)/pytest tests e2e || $(AGAIN)

# A dozen real programs on two shared cores can miss a time limit through no fault of theirs.
# What failed runs once more, alone; both reports stand in the output, and failing twice fails.
AGAIN = { echo "Some tests failed above. Each runs once more, alone:"; \
	$(BIN)/pytest tests e2e --last-failed --last-failed-no-failures none; }

.PHONY: test-fast
test-fast: $(STAMP) ## run the tests that need no control plane
	$(BIN)/pytest tests

.PHONY: chaos
chaos: $(STAMP) go-programs ## let everything come, go and die for DURATION seconds by SEED; fails where anything was wrong
	$(BIN)/python -m e2e.chaos --duration $(or $(DURATION),120) $(if $(SEED),--seed $(SEED))

.PHONY: fuzz-cel
fuzz-cel: $(STAMP) go-programs ## compare N random CEL expressions with cel-go (N=100000)
	$(BIN)/python -m e2e.tests.differential --comparisons $(or $(N),100000)

.PHONY: fuzz-hostile
fuzz-hostile: $(STAMP) ## run N expressions that want to stop the operator, each under a budget of 0.2 s (N=100000 SEED=…)
	$(BIN)/python -m tests.cel.hostile --count $(or $(N),100000) $(if $(SEED),--seed $(SEED))

.PHONY: fuzz-validation
fuzz-validation: $(STAMP) go-programs ## compare what `plan` says of N random objects with the API server (N=2000 SEED=1)
	$(BIN)/python -m e2e.validation --number $(or $(N),2000) --seed $(or $(SEED),1)

.PHONY: fields
fields: $(STAMP) go-programs ## write the fields that `plan` knows, from a running API server
	$(BIN)/python -m e2e.schemas

.PHONY: fuzz-worlds
fuzz-worlds: $(STAMP) ## decide in N worlds that are made to take for ever (N=1000), and judge what each cost
	$(BIN)/python -m tests.support.hostile_worlds --worlds $(or $(N),1000) --seed $(or $(SEED),1)

.PHONY: bench-e2e
bench-e2e: $(STAMP) go-programs ## pods from create to bound, beside kube-scheduler alone (SIZES="100/400 500/1000" REPEAT=3 SOAK=5000)
	$(BIN)/python -m bench.e2e $(if $(SIZES),--sizes $(SIZES)) $(if $(REPEAT),--repeat $(REPEAT) --native) --idle $(or $(IDLE),0) --soak $(or $(SOAK),0)

.PHONY: bench-allocator
bench-allocator: $(STAMP) go-programs ## measure the allocator beside kube-scheduler's; figures go to build/bench/allocator.json
	$(BIN)/python -m bench.allocator

.PHONY: bench-fairness
bench-fairness: $(STAMP) ## usual pods beside pods whose searches are cut; figures go to build/bench/fairness.json
	$(BIN)/python -m bench.fairness

.PHONY: bench-decisions
bench-decisions: $(STAMP) ## measure what the limits of a decision cost; figures go to build/bench/decisions.json
	$(BIN)/python -m bench.decisions

.PHONY: bench-cel
bench-cel: $(STAMP) go-programs ## measure CEL beside cel-go; figures go to build/bench/cel.json
	$(BIN)/python -m bench.cel

.PHONY: docs-cel
docs-cel: $(STAMP) ## write docs/cel-functions.md from the code
	$(BIN)/python -c "from dovetail.core.cel.catalog import document; print(document(), end='')" > docs/cel-functions.md

.PHONY: chart
chart: ## copy crds/ into the chart, which cannot read files outside itself
	rm -f charts/dovetail/files/crds/*.yaml
	cp crds/*.yaml charts/dovetail/files/crds/

.PHONY: docs
docs: $(STAMP) ## write into the documentation what its commands print now
	$(BIN)/python -m tests.docs.pages

.PHONY: wheel
wheel: $(STAMP) ## build the wheel into build/wheel
	rm -rf build/wheel
	$(BIN)/uv build --quiet --wheel --no-build-isolation --out-dir build/wheel .

IMAGE ?= dovetail:dev
.PHONY: image
image: wheel ## build the image (IMAGE=…); needs Docker
	docker build --tag $(IMAGE) .

.PHONY: demo
demo: $(STAMP) ## the whole story in one process: no Go, no cluster
	$(BIN)/python -m dovetail demo

.PHONY: lock
lock: $(STAMP) ## resolve the lock files anew
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate requirements/uv.in -o requirements/uv.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml -o requirements/runtime.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra dev pyproject.toml -o requirements/dev.txt
