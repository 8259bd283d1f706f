# make help lists the targets. Start with `make demo` and `make test`.
.DEFAULT_GOAL := build

GO      ?= go
PREFIX  ?= /usr/local
BIN     := bin/cosplay
VERSION := $(shell sed -n 's/^const release = "\(.*\)"/\1/p' internal/cli/version.go)
LDFLAGS := -s -w

# Tests, vet and lint use what was compiled for the binary, and a clone in another folder too.
export GOFLAGS := $(GOFLAGS) -trimpath

# Pinned, and run through the module proxy: nothing to install by hand.
LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: help build node image manifests lib demo test race sanitize check check-node check-cross check-long check-engines check-cluster check-clients check-torch check-pytorch chaos format format-check lint bench dist dist-check deb install clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: lib ## build bin/cosplay, with the C libraries inside
	@mkdir -p bin && echo $(BIN)
	@$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/cosplay

# The driver for Kubernetes is another module, so that cosplay does not grow by the libraries of Kubernetes.
node: build ## build bin/cosplay-node, a DRA driver for Kubernetes
	@cd node && CGO_ENABLED=0 $(GO) build -ldflags '$(LDFLAGS)' -o ../bin/cosplay-node .

image: node ## build the image of cosplay-node as an archive in dist, for docker load or ctr images import
	@scripts/image bin dist $(VERSION)

manifests: node ## write the device classes into deploy/kubernetes
	@bin/cosplay-node classes >deploy/kubernetes/classes.yaml

# A make that was started with -j shares its jobs.
jobs = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j $(shell nproc))

lib: ## build the C libraries that the binary carries
	@$(MAKE) --no-print-directory $(jobs) -C driver

demo: build ## run cosplay on a simulated H200; needs no GPU, no Docker
	@scripts/demo $(BIN)

# Tests check the simulated driver with NVIDIA's own nvidia-smi, from Debian's package.
# In CI it is required; elsewhere its tests are skipped with a message.
JUDGE := bin/judge
with_judge = scripts/install-nvidia-smi $(JUDGE) || test -z "$$CI" || exit 1; \
	if [ -x $(JUDGE)/nvidia-smi ]; then export COSPLAY_NVIDIA_SMI=$(CURDIR)/$(JUDGE)/nvidia-smi; \
	else echo "nvidia-smi is not available: the tests that need it are skipped"; export COSPLAY_NO_NVIDIA_SMI=1; fi

# Sessions in Docker are tested in images that scripts/test-images builds, if an engine
# answers. COSPLAY_DOCKER=1, which the tests read too, requires an engine.
with_images = if ! timeout 10 docker version >/dev/null 2>&1 || ! scripts/test-images; then \
	echo "no Docker engine with the test images: the tests of sessions in Docker are skipped"; \
	if [ "$$COSPLAY_DOCKER" = 1 ]; then echo "COSPLAY_DOCKER=1 requires them"; exit 1; fi; fi

# The tests wait for processes and engines more than they compute, so more of them run
# at once than there are processors. The time limit only ends a run that hangs: beside
# other load the tests take several times as long as alone. GOGC is for the compiler.
TESTFLAGS := -timeout 60m -parallel $(shell expr 3 \* $$(nproc))
as_users_run = $(if $(GOGC),-exec 'env -u GOGC') # go caches no results with -exec

test: build ## all tests
	@$(with_judge); $(with_images); $(GO) test $(TESTFLAGS) $(as_users_run) -count=1 ./...
	@cd node && CGO_ENABLED=0 $(GO) test -count=1 ./...

# The packages whose goroutines share data. RACED=1 leaves them to make race, whose
# run of their tests proves all that one without the detector does.
RACE := ./internal/agent ./internal/apply ./internal/durable ./internal/initd/sshd ./internal/ledger \
	./internal/observe ./internal/plan ./internal/project ./internal/recovery ./internal/runtime/... ./internal/selftest ./internal/worldtest

# Without the option, each process of the detector waits a second before it ends.
race: lib ## the tests of the packages with goroutines, with the race detector
	@$(with_images); GORACE=atexit_sleep_ms=20 $(GO) test $(TESTFLAGS) $(as_users_run) -count=1 -vet=off -race $(RACE)

# Programs preload the address sanitizer, so tests that inspect the libraries
# themselves, or use another libc, cannot run with it. All are in a copy of the
# sources: what is built here has no sanitizer, also while this runs or after Ctrl-C.
INSPECT := LoadsEverywhere|TestSymbols|TestRuntimes|TestEveryLibc|TestTorch
libasan = $(shell readlink -f "$$(cc -print-file-name=libasan.so)")
c_tests = $(GO) test $(TESTFLAGS) -count=1 -vet=off ./internal/sim ./internal/disguise/...
built = $(MAKE) -s $(jobs) -C driver

sanitize: lib ## the tests of the C code, with the sanitizers of undefined behavior and of addresses
	@$(with_judge); copy=$$(mktemp -d) && trap 'rm -rf "$$copy"' EXIT INT TERM && \
	tar -c --exclude=./bin --exclude=./dist --exclude=./.git . | tar -x -C $$copy && cd $$copy && status=0; \
	$(built) SANITIZE="undefined address" && \
	  $(c_tests) -exec 'env -u GOGC ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$(libasan)' -skip '$(INSPECT)' || status=1; \
	$(built) SANITIZE=undefined && $(c_tests) $(as_users_run) -run '$(INSPECT)' || status=1; \
	exit $$status

# Other versions of clang-format break some lines elsewhere.
C_FILES := $(shell find driver internal scripts -name '*.[ch]')
CLANG_FORMAT := $(shell for name in clang-format-14 clang-format; do \
	$$name --version 2>/dev/null | grep -q 'version 14\.' && echo $$name && break; done)

format: ## format Go and C files; C needs clang-format 14
	@gofmt -w cmd internal catalog node driver/*.go
	@$(or $(CLANG_FORMAT),echo "clang-format 14 is not installed:") -i $(C_FILES)

format-check: ## check the format of Go files, and of C files where clang-format 14 is installed
	@unformatted=$$(gofmt -l cmd internal catalog node driver/*.go); \
	  if [ -n "$$unformatted" ]; then echo "run make format for $$unformatted"; exit 1; fi
	@if [ -n "$(CLANG_FORMAT)" ]; then $(CLANG_FORMAT) --dry-run --Werror $(C_FILES); \
	  else echo "clang-format 14 is not installed: the C files are not checked"; test -z "$$CI"; fi

# The client for a Mac is checked while the tests run, which often wait.
check: build format-check ## what must pass before a commit: format, vet, lint, tests
	$(GO) vet ./...
	@$(MAKE) --no-print-directory lint
	@scripts/check-cross $(BIN) >bin/check-cross.log 2>&1 & cross=$$!; $(with_judge); $(with_images); \
	  $(GO) test $(TESTFLAGS) $(as_users_run) -vet=off $$($(GO) list ./... | $(if $(RACED),grep -vxF "$$($(GO) list $(RACE))",cat)); status=$$?; \
	  wait $$cross || status=1; cat bin/check-cross.log; exit $$status

	@$(MAKE) --no-print-directory check-node

check-cross: build ## build and vet the client for a Mac, and run one without cgo
	@scripts/check-cross $(BIN)

check-node: build ## vet, lint and tests of the driver for Kubernetes
	@cd node && CGO_ENABLED=0 $(GO) vet ./... && $(GO) run -exec 'env CGO_ENABLED=0' $(LINT) run ./... && CGO_ENABLED=0 $(GO) test -count=1 ./...

check-long: lib ## the fuzzers, a minute each; all tables of packings and 100,000 random fleets; every function of the driver made unavailable
	@for fuzzer in internal/config:FuzzLoad internal/config:FuzzValues internal/config:FuzzFormat internal/state:FuzzDecode internal/apply:FuzzRecover internal/hostfile:FuzzDecode internal/ledger:FuzzPage internal/agent:FuzzProtocol; do \
	  echo "$$fuzzer"; \
	  $(GO) test ./$${fuzzer%%:*} -run '^$$' -fuzz "^$${fuzzer#*:}$$" -fuzztime 60s -fuzzminimizetime 20x || exit 1; \
	done
	COSPLAY_LONG=1 $(GO) test ./internal/place -timeout 4h -count=1
	COSPLAY_SWEEP=all $(GO) test ./cmd/cosplay -timeout 1h -count=1 -run TestEveryFunctionUnavailable

# Random stories. The run prints its seed; SEED=... repeats it.
ROUNDS ?= 1000
SEED   ?= 0
check-torch: build ## PyTorch in sessions: Debian's of this machine, and those of scripts/torch-roots
	@scripts/check-torch $(BIN)

check-pytorch: build ## PyTorch's own tests in sessions, against the failures that scripts/pytorch lists
	@scripts/check-pytorch $(BIN)

chaos: lib ## random applies, kills, faults and neighbours; ROUNDS=1000 SEED=... DOCKER=1
	@if [ -n "$(DOCKER)" ]; then scripts/test-images; fi
	@cd cmd/cosplay && $(GO) test -timeout 2h -count=1 -run '^TestChaos$$' -rounds $(ROUNDS) -seed $(SEED) $(if $(DOCKER),-docker)

check-engines: lib ## tests of containers on Docker 26 and 28 and podman 4.3 and 5, as root
	@scripts/check-engines $(ENGINES)

check-cluster: image ## the driver, its image and its manifests in a cluster with kubelet and containerd, as root
	@scripts/check-cluster

check-clients: build ## real clients of NVML and CUDA on a simulated host
	@scripts/install-nvidia-smi bin/judge >/dev/null
	@scripts/clients $(BIN) bin/judge bin/clients

lint: lib ## golangci-lint, with the reasons in .golangci.yml; the warnings of the C compiler
	@$(MAKE) -s -C driver lint
	$(GO) run $(LINT) run ./...

bench: build ## measure speed; prints ratios and CPU times
	@scripts/bench $(BIN)
	@scripts/bench-scale $(BIN)
	@if docker image inspect cosplay-test/sshd >/dev/null 2>&1; then scripts/bench-ssh $(BIN); fi

dist: ## build the archives and Debian packages of a release from the last commit, in dist
	@scripts/dist dist $(VERSION)

dist-check: ## build a release, and the part for this machine once more in another folder; compare the bytes; check what is installed
	@rm -rf bin/dist && mkdir -p bin/dist/tmp
	@scripts/dist bin/dist/1 $(VERSION)
	@TMPDIR=$(CURDIR)/bin/dist/tmp scripts/dist bin/dist/2 $(VERSION) $$($(GO) env GOARCH) >/dev/null
	@cd bin/dist/1 && sha256sum --check --quiet ../2/SHA256SUMS && echo "Both builds have the same bytes."
	@scripts/check-installed bin/dist/1 $(VERSION)

# What install copies, archives have and packages are made of: bin and share.
files = rm -rf bin/files && $(GO) run ./cmd/cosplay-dist files bin/files $(VERSION) $(BIN) driver/lib/cosplay-init

deb: build ## build a Debian package of the working tree, in dist
	@$(files) && scripts/deb bin/files dist $(VERSION) $(shell dpkg --print-architecture 2>/dev/null)

install: build ## install binary, man pages and completions into PREFIX, default /usr/local
	@$(files)
	umask 022 && mkdir -p $(DESTDIR)$(PREFIX) && cp -R bin/files/. $(DESTDIR)$(PREFIX)/

clean: ## remove what was built
	rm -rf bin dist
	@$(MAKE) --no-print-directory -C driver clean
