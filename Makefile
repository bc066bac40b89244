# What can be done with this tree; `make` alone lists it.

MODULES := gateway migrations orgservice-new orgservice-old services specialroutes
PACKAGES := $(MODULES:%=./%/...)
GOLANGCI_LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# The end-to-end tests build and start the other modules' programs, whose sources
# go's test cache does not see: they are run anew each time. They share the demo's
# fixed ports: one package after the other.
END_TO_END := ./services/estate/...

SUITES := bin/h2spec bin/interop-client bin/interop-server

.PHONY: help
help: ## List these commands
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Build and start the whole estate here and count OLD and NEW; Ctrl-C stops it
	go build -o bin/estate ./services/cmd/estate
	exec bin/estate

.PHONY: build
build: ## Build all programs into bin/
	go build -o bin/ $(PACKAGES)

.PHONY: test
test: bin/consul $(SUITES) ## Run all tests with the race detector, with a PostgreSQL server of their own
	go run ./services/cmd/withpostgres -- $(MAKE) --keep-going test-units test-end-to-end

# The Consul that tests ask. The first time takes minutes, afterwards it is there.
# Without it tests are skipped at home; where CI is set, they fail.
bin/consul: .ci/consul/go.mod .ci/consul/go.sum
	cd .ci/consul && GOWORK=off go build -o ../../$@ github.com/hashicorp/consul || test "$$CI" != true

# The suites from outside: HTTP/2's conformance, and gRPC's own client and server.
bin/h2spec: TOOL := github.com/summerwind/h2spec/cmd/h2spec
bin/interop-client: TOOL := google.golang.org/grpc/interop/client
bin/interop-server: TOOL := google.golang.org/grpc/interop/server
$(SUITES): .ci/suites/go.mod .ci/suites/go.sum
	cd .ci/suites && GOWORK=off go build -o ../../$@ $(TOOL) || test "$$CI" != true

# These two expect TEST_DATABASE_URL; without it the tests that need it are skipped.
.PHONY: test-units test-end-to-end
test-units:
	packages=$$(go list $(PACKAGES)) && \
	go test -race -timeout=15m $$(echo "$$packages" | grep -v /services/estate)

test-end-to-end:
	go test -race -timeout=30m -count=1 -p=1 $(END_TO_END)

# BENCH chooses by name, as in make bench BENCH=Decide_Sticky, and then the comparison
# with nginx and HAProxy is left out; COMPARE holds flags for it. One package after
# the other, so that none disturbs another; no part of the tests, whose machine is
# shared.
BENCH := .
COMPARE :=
.PHONY: bench
bench: ## Measure decisions, records, log lines and calls, beside nginx and HAProxy (docs/performance.md)
	go test -p=1 -run='^$$' -bench='$(BENCH)' -benchmem ./services/routing \
	  ./gateway/internal/records ./gateway/internal/table ./gateway/internal/accesslog ./gateway/internal/forward
	test '$(BENCH)' != . || $(MAKE) compare

.PHONY: compare
compare: ## Measure the gateway beside nginx and HAProxy alone
	go run ./services/cmd/bench $(COMPARE)

.PHONY: profile
profile: ## Show where the gateway's processor time goes under full load; bin/gateway.prof is for go tool pprof
	go run ./services/cmd/bench -profile=bin/gateway.prof $(COMPARE)

# SOAK is how long the storms go on; a minute is a fifth of what one round takes.
SOAK := 30m
.PHONY: soak
soak: ## Storm the gateway with slow, idle and hostile clients for SOAK, with each engine
	go test -timeout=0 -count=1 -v ./services/estate/storm -soak=$(SOAK)

.PHONY: lint
lint: lint-format lint-tidy lint-vet lint-rules ## Check format, go.mod files, and the rules of .golangci.yml

.PHONY: lint-format lint-tidy lint-vet lint-rules
lint-format:
	@unformatted=$$(gofmt -l $(MODULES)); test -z "$$unformatted" || { echo "gofmt -w these:"; echo "$$unformatted"; exit 1; }

lint-tidy:
	@for module in $(MODULES); do \
	  (cd $$module && GOWORK=off go mod tidy -diff) || { echo "go mod tidy in $$module"; exit 1; }; \
	done

# Twice: the demo is promised for macOS as well.
lint-vet:
	go vet $(PACKAGES)
	GOOS=darwin go vet $(PACKAGES)

lint-rules:
	$(GOLANGCI_LINT) run --allow-parallel-runners $(PACKAGES)
