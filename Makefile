# SPDX-License-Identifier: Apache-2.0

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BIN := $(CURDIR)/bin
# One set of flags for each build, test and check: with others every package would be compiled once more.
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath
TOOLS := $(BIN)/tools
# Flags for every go test, for example TESTFLAGS='-run Claim -v'.
TESTFLAGS ?=
# How many packages with a control plane of their own are tested at once.
CONTROL_PLANES ?= 2
# How many processes share the specs of test/story, each with a control plane of its own: they mostly wait.
STORY_PROCS ?= 3
# Flags of ginkgo for them, for example STORYFLAGS='--focus breaker -v'.
STORYFLAGS ?=
# How often `make test-e2e` kills the manager.
KILLS ?= 200
# How long `make soak` and `make test-model` last.
TIME ?= 10m
# The seed that `make test-model` begins with; empty takes one that changes with time.
SEED ?=
# How many random inputs `make test-properties` tries.
CHECKS ?= 2000
# Where `make test-mutants` writes a table for each bundle; empty writes none.
PROOF ?=
# Set to 1, the demo ends by itself and its exit code tells how it went.
DEMO_ONCE ?=
# Set to 1, the demo shows two virtual machines that truly boot.
DEMO_VM ?=
# What make load measures; docs/load.md explains each. LOADFLAGS takes the other flags of bin/load.
N ?= 100
CLAIMS ?= -1
BOOT_DELAY ?= 0s
LATENCY ?= 0s
WEBHOOKS ?= true
IDLE ?= 200s
MAINTENANCES ?= 0
INVENTORY ?=
LOADFLAGS ?=
# How many servers `make requests` counts, where it writes the counts, and the counts of another build to compare them with.
SERVERS ?= 3
COUNTS ?=
AGAINST ?=
# Which boot images `make probe-image` builds, and where; docs/images.md explains each variable.
IMAGES ?= amd64,arm64,cloud
IMAGE_OUT ?= bin/image
SIGN_KEY ?=
SIGN_CERT ?=
CA ?=
FIRMWARE ?=
CMDLINE ?=
# For which architectures `make images` builds, and where it pushes to: registry/prefix.
ARCHES ?= amd64
PUSH ?=
# The version that the programs tell, and the tag of the images.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# The packages whose tests need nothing but Go.
UNITS = $$(go list ./... | grep -v '/test/') ./test/guest ./test/emulated ./test/redfish-emulator

# Modules of their own, and those among them that hold tests.
MODULES := $(patsubst %/go.mod,%,$(shell git ls-files --cached --others --exclude-standard 'go.mod' '*/go.mod'))
MODULES := $(patsubst go.mod,.,$(MODULES))
TEST_MODULES := $(filter-out . test/tools test/controlplane,$(MODULES))

##@ Everyday

.PHONY: help
help: ## Print this list.
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z][a-z0-9-]*:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build every program into bin/.
	@.ci/go-build build -o $(BIN)/ -- ./cmd/... ./test/redfish-emulator

.PHONY: demo
demo: control-plane build $(if $(filter 1,$(DEMO_VM)),vm-images) ## Show the whole way on 20 emulated servers; DEMO_VM=1 takes two virtual ones, DEMO_ONCE=1 ends by itself.
	@.ci/go-build demo -o $(BIN)/demo -- ./test/demo
	DEMO_ONCE=$(DEMO_ONCE) DEMO_VM=$(DEMO_VM) exec $(BIN)/demo

.PHONY: load
load: ## Measure N emulated servers, as JSON: N= CLAIMS= BOOT_DELAY= LATENCY= WEBHOOKS= IDLE= MAINTENANCES= INVENTORY= (docs/load.md).
	@$(MAKE) control-plane build >&2
	@.ci/go-build load -o $(BIN)/load -- ./test/load >&2
	@exec $(BIN)/load --servers=$(N) --claims=$(CLAIMS) --boot-delay=$(BOOT_DELAY) --latency=$(LATENCY) \
	  --webhooks=$(WEBHOOKS) --idle=$(IDLE) --maintenances=$(MAINTENANCES) --inventory="$(INVENTORY)" $(LOADFLAGS)

.PHONY: requests
requests: control-plane ## List what the manager asks for one server, with reasons: SERVERS= COUNTS= AGAINST= (docs/load.md).
	@go build -o $(BIN)/requests ./test/requests >&2
	@exec $(BIN)/requests --servers=$(SERVERS) --counts="$(COUNTS)" --against="$(AGAINST)"

.PHONY: fmt
fmt: $(TOOLS)/.built ## Format all Go code.
	$(TOOLS)/golangci-lint fmt

.PHONY: generate
generate: ## Regenerate what is generated: deep copies, CRDs, docs (every go:generate line).
	go generate ./...

.PHONY: clean
clean: ## Remove what was built; the cached control plane stays.
	rm -rf $(BIN)

##@ Checks

.PHONY: lint
lint: $(TOOLS)/.built ## Run the linters, among them the import rules and the API conventions.
	$(TOOLS)/golangci-lint run ./...
	for module in $(TEST_MODULES); do (cd $$module && $(TOOLS)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...); done
	$(TOOLS)/golangci-lint-kube-api-linter run --config .golangci-kal.yaml ./api/...

.PHONY: verify
verify: verify-generated verify-modules verify-purity verify-size verify-words kustomize-check ## Fail when anything generated is stale or a promise is broken.

.PHONY: verify-generated
verify-generated: ## Fail when `make generate` would change a file.
	@.ci/unchanged-by $(MAKE) generate

.PHONY: verify-modules
verify-modules: ## Fail when a go.mod or go.sum is not tidy.
	@for module in $(MODULES); do \
	  (cd $$module && go mod tidy -diff) || { echo "verify: $$module is not tidy: run 'go mod tidy' there and commit" >&2; exit 1; }; \
	done

.PHONY: verify-purity
verify-purity: ## Fail when the engine depends on Kubernetes.
	@if go list -deps ./engine/... ./macprefixes/... | grep '^k8s\.io/'; then \
	  echo "verify: the engine is pure: it must not depend on the packages above" >&2; exit 1; \
	fi

.PHONY: verify-size
verify-size: ## Fail when a package, file, function, struct or receiver grows over its limit.
	go run ./test/house

.PHONY: verify-words
verify-words: ## Fail when a hand-written page has a sentence too long, or a word that the project gave up.
	@go run ./docs/internal/words

.PHONY: kustomize-check
kustomize-check: $(TOOLS)/.built ## Fail when a kustomization does not build.
	@for dir in config/default config/boot config/samples; do \
	  $(TOOLS)/kustomize build $$dir >/dev/null || { echo "verify: $$dir does not build" >&2; exit 1; }; \
	done

##@ Tests

.PHONY: test
test: control-plane test-unit test-integration ## Run all tests but the end-to-end ones.

.PHONY: test-unit
test-unit: ## Run the tests that need nothing but Go.
	go test $(TESTFLAGS) $(UNITS)
	for module in $(TEST_MODULES); do (cd $$module && go test $(TESTFLAGS) ./...); done

.PHONY: test-integration
test-integration: control-plane build $(TOOLS)/ginkgo ## Run the tests against a real API server.
	go test -p $(CONTROL_PLANES) -timeout 40m $(TESTFLAGS) $$(go list ./test/... | grep -Ev '/test/(e2e|story|vm)')
	$(TOOLS)/ginkgo run --procs $(STORY_PROCS) --timeout 40m $(STORYFLAGS) ./test/story

.PHONY: test-vm
test-vm: control-plane vm-images ## Test machines that truly boot, in QEMU: it installs Debian packages and takes about six minutes.
	go test -timeout 25m -count 1 $(TESTFLAGS) ./test/vm -args -ginkgo.timeout=24m
	METALAW_VM_IMAGES=$(CURDIR)/bin/vm-image go test -timeout 10m -count 1 $(TESTFLAGS) -run VirtualMachine ./test/media

.PHONY: test-mutants
test-mutants: ## Change every shipped bundle in every small way, and the source in named ones: a rule or a test must refuse each; PROOF=dir keeps the tables.
	MUTANTS=all PROOF=$(abspath $(PROOF)) go test -timeout 120m -count 1 -v $(TESTFLAGS) ./test/explorer
	MUTANTS=all go test -timeout 60m -count 1 -v $(TESTFLAGS) -run EveryMutant ./test/mutants

.PHONY: test-e2e
test-e2e: control-plane build test-mutants ## Run the end-to-end tests with the built programs; KILLS=200 is how often the manager dies.
	GRACE=1 KILLS=$(KILLS) go test -timeout 120m $(TESTFLAGS) ./test/crash -args -ginkgo.timeout=120m
	packages=$$(go list ./test/e2e/... 2>/dev/null || true); [ -z "$$packages" ] || go test -p 1 -timeout 30m $(TESTFLAGS) $$packages

.PHONY: soak
soak: control-plane build ## See that goroutines and memory stay flat under load; TIME=10m is how long.
	SOAK=$(TIME) go test -timeout 0 -v $(TESTFLAGS) ./test/crash -args -ginkgo.timeout=100h -ginkgo.focus='A long life'

.PHONY: test-model
test-model: control-plane build ## Do random things to a whole fleet for TIME=10m, from SEED=n on, and judge them by the safety rules.
	seed=$(SEED); MODEL=$(TIME) SEED=$${seed:-$$(date +%s)} go test -timeout 0 -count 1 -v $(TESTFLAGS) -run TestModel ./test/model

.PHONY: test-properties
test-properties: ## Try every property of the unit tests with CHECKS=2000 random inputs instead of 100, and each decision of all shipped bundles.
	PROPERTIES=all go test -timeout 0 -count 1 $(TESTFLAGS) -run EveryDecision ./policies
	go test -timeout 0 $(TESTFLAGS) $$(git grep -l '"pgregory.net/rapid"' -- '*_test.go' ':!test' | xargs -n1 dirname | sort -u | sed 's|^|./|') -rapid.checks=$(CHECKS)

.PHONY: test-race
test-race: ## Run the unit tests under the race detector.
	go test -race -timeout 60m $(TESTFLAGS) $(UNITS)

.PHONY: bench
bench: ## Run the benchmarks.
	go test -run '^$$' -bench . -benchmem $(TESTFLAGS) $(UNITS)

.PHONY: figures
figures: ## Measure anew what docs/cost.svg shows (five minutes), on a machine that does nothing else.
	@{ go test -run '^$$' -bench 'BenchmarkSelect/servers=' -benchmem -count 3 ./engine/selection && \
	  go test -run '^$$' -bench 'BenchmarkPass/./servers=/policy=default/kinds=20' -benchtime 3x ./controllers/scheduler && \
	  go test -run '^$$' -bench 'BenchmarkAdmission/servers=/claim=placement$$' -benchtime 1000x -benchmem ./webhooks && \
	  go test -run '^$$' -bench 'BenchmarkMemory' -benchtime 1x ./controllers/scheduler/informer; } >docs/cost.new
	@mv docs/cost.new docs/cost.txt
	go generate ./docs

##@ Images

.PHONY: probe-image
probe-image: $(BIN)/metalaw-image ## Build what machines boot: IMAGES= IMAGE_OUT= SIGN_KEY= SIGN_CERT= CA= FIRMWARE= CMDLINE= (docs/images.md).
	@$(BIN)/metalaw-image probe --images='$(IMAGES)' --out='$(IMAGE_OUT)' --version='$(VERSION)' \
	  --sign-key='$(SIGN_KEY)' --sign-cert='$(SIGN_CERT)' --ca='$(CA)' --firmware='$(FIRMWARE)' --cmdline='$(CMDLINE)'

.PHONY: probe-image-lock
probe-image-lock: $(BIN)/metalaw-image ## Take the newest kernels of Debian into config/image/lock.yaml.
	@$(BIN)/metalaw-image lock

.PHONY: images
images: probe-image ## Write container images and the boot artefact as OCI layouts; ARCHES= builds for others, PUSH=registry/prefix pushes.
	@$(BIN)/metalaw-image images --arches='$(ARCHES)' --version='$(VERSION)' --probe='$(IMAGE_OUT)/oci' --push='$(PUSH)'

# Always asked for: Go knows whether there is anything to do.
.PHONY: $(BIN)/metalaw-image
$(BIN)/metalaw-image:
	@go build -buildvcs=false -o $@ ./internal/tools/metalaw-image

##@ Parts

.PHONY: control-plane
control-plane: ## Download or build etcd, kube-apiserver and kubectl, and build their controllers (once, at most six minutes).
	@test/controlplane/build.sh

# What virtual machines need of Debian; on other systems the programs have to be there.
VM_PACKAGES := qemu-system-x86 ipxe-qemu ovmf kmod

.PHONY: vm-packages
vm-packages: ## Install what virtual machines need, where anything of it is missing.
	@missing=(); for package in $(VM_PACKAGES); do dpkg -s $$package >/dev/null 2>&1 || missing+=($$package); done; \
	if [ $${#missing[@]} -eq 0 ]; then exit 0; fi; \
	if ! command -v apt-get >/dev/null; then \
	  command -v qemu-system-x86_64 depmod >/dev/null || { echo "vm-packages: install QEMU for x86_64 with its iPXE and OVMF, and depmod" >&2; exit 1; }; \
	  exit 0; \
	fi; \
	root=(); [ "$$(id -u)" = 0 ] || root=(sudo); \
	"$${root[@]}" apt-get update -qq && DEBIAN_FRONTEND=noninteractive "$${root[@]}" apt-get install -y -qq --no-install-recommends "$${missing[@]}"

.PHONY: vm-images
vm-images: vm-packages ## Build the boot images that virtual machines of tests use into bin/vm-image.
	@$(MAKE) probe-image IMAGES=amd64,cloud IMAGE_OUT=bin/vm-image

.PHONY: tools
tools: $(TOOLS)/.built ## Build the pinned tools into bin/tools.

# On its own, so that tests do not wait for all the linters.
$(TOOLS)/ginkgo: test/tools/go.mod test/tools/go.sum
	@mkdir -p $(TOOLS)
	@cd test/tools && go build -o $@ github.com/onsi/ginkgo/v2/ginkgo
	@touch $@

$(TOOLS)/.built: test/tools/go.mod test/tools/go.sum
	@echo "tools: building (the first time takes two minutes) ..."
	@mkdir -p $(TOOLS)
	@cd test/tools && go build -o $(TOOLS)/ tool
	@touch $@
