# Run `make` for the list of targets.
.DEFAULT_GOAL := help
SHELL := /bin/sh
GO ?= go
export CGO_ENABLED ?= 0

FUZZTIME ?= 10s

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## set up, build, run a command in the jail and print what was enforced
	@scripts/setup run
	@$(MAKE) --no-print-directory build
	@scripts/demo

build: ## build ./sandboxd (static, for this machine)
	@scripts/build sandboxd

test: ## set up, check, and run every test (with the race detector)
	@scripts/setup test
	@$(MAKE) --no-print-directory check
	@scripts/test

check: ## formatting, vet for every platform, lint, import graph
	@scripts/check

quick: ## vet and test without set-up, race detector or other platforms
	$(GO) vet ./...
	$(GO) test ./...

soak: ## the long versions of the supervision tests: thousands of executions and kills (an hour)
	SANDBOXD_SOAK=1 $(GO) test -count=1 -timeout 6h -v -run 'AnyMoment|WhileStarting|Chaos|NeverBusy|Soak|ThroughCat|SlowReader|EveryExit' ./internal/e2e

bench: build ## the benchmarks, as ratios, into testdata/bench/THIS-MACHINE.txt (BENCHTIME, COUNT)
	@scripts/bench

fuzz: ## every fuzz target for FUZZTIME (default 10s) each
	@scripts/fuzz $(FUZZTIME)

vuln: ## known vulnerabilities in what a release links (fetches their list; not part of make test)
	@scripts/vuln

dist: ## build releases into dist/: static binaries, Debian packages, checksums
	@scripts/dist

dist-check: ## build every release twice and compare (minutes; make test compares this machine's)
	SANDBOXD_DIST=all $(GO) test -count=1 -timeout 30m -run TestDistIsReproducible ./internal/e2e

clean: ## remove what the other targets built
	rm -rf sandboxd bin dist .cache

-include scripts/kernels.mk scripts/mutate.mk

.PHONY: help run build test check quick soak bench fuzz vuln clean kernels kernels-soak mutate dist dist-check

