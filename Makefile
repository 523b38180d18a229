# Ottla. The two commands of the README are `make run` and `make test`; each
# part of the latter runs alone under the names below.

SHELL     := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
GO        ?= go
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS   := -s -w -X main.version=$(VERSION)
SIM_SEEDS ?= 1000
SIM_CLUSTER_SEEDS ?= 2000
SIM_BROKERS_SEEDS ?= 125
SOAK_SIM_LAST ?= 24000
SOAK_SIM_CLUSTER_LAST ?= 25000
SOAK_SIM_BROKERS_LAST ?= 2000
FUZZ_TIME ?= 3s
SOAK_FUZZ_TIME ?= 10m

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOFUMPT     := mvdan.cc/gofumpt@v0.12.0
ERRCHECK    := github.com/kisielk/errcheck@v1.9.0
INEFFASSIGN := github.com/gordonklaus/ineffassign@v0.2.0
MISSPELL    := github.com/client9/misspell/cmd/misspell@v0.3.4
ERRORLINT   := codeberg.org/polyfloyd/go-errorlint@v1.9.1

.PHONY: all install build run test test-quick unit race lint cross torn fuzz soak-fuzz powercut fulldisk sim sim-cluster sim-brokers soak-sim soak-sim-cluster soak-sim-brokers compat suites readme-table consumers tools applications diff dumpcheck compaction handover cluster cluster-move cluster-move-long cluster-placement cluster-long cluster-directories crash many chaos soak-chaos chaos-cluster soak-chaos-cluster soak-eos edge bench rebalance rebalance-alone lag control control-soak control-sample clean

all: build

build: ## a static bin/ottla
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ottla ./cmd/ottla

run: build ## a working broker on localhost:9092, data in ./data
	exec ./bin/ottla serve

# Everything, in the order of cost. What a part needs it installs itself.
test: install build lint cross unit race torn sim sim-cluster sim-brokers fuzz compat suites consumers tools applications diff dumpcheck compaction handover cluster cluster-directories crash powercut fulldisk chaos edge rebalance-alone lag control-sample
	@echo "make test: all parts passed"

test-quick: build ## under two minutes
	$(GO) test ./...

unit:
	$(GO) test -timeout 30m ./...

race:
	CGO_ENABLED=1 $(GO) test -race -short -timeout 30m ./protocol/... ./storage/... ./controller/... ./cmd/...

lint:
	$(GO) vet ./...
	$(GO) vet -tags compat ./compat/...
	@unformatted=$$($(GO) run $(GOFUMPT) -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not gofumpt: $$unformatted"; exit 1; }
	$(GO) run $(STATICCHECK) ./...
	$(GO) run $(ERRCHECK) -exclude .ci/errcheck.txt -ignoretests ./...
	$(GO) run $(INEFFASSIGN) ./...
	$(GO) run $(ERRORLINT) -errorf -asserts=false -comparison=false ./...
	$(GO) run $(MISSPELL) -error $$(git ls-files '*.go' '*.md')
	$(GO) test ./cmd/ottla/internal/lint

cross: ## the other platforms compile
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) build -o /dev/null ./cmd/ottla
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 $(GO) build -o /dev/null ./cmd/ottla

torn: ## every byte of every small file cut, zeroed, garbled; every state that a power cut may leave
	.ci/torn

sim: ## one node under a seeded scheduler
	GOGC=300 OTTLA_SIM_SEEDS=$(SIM_SEEDS) $(GO) test -count=1 -timeout 30m -run 'Seeds|Replay' ./cmd/ottla/internal/sim

sim-cluster: ## replication among three machines under a seeded scheduler
	GOGC=300 OTTLA_SIM_SEEDS=$(SIM_CLUSTER_SEEDS) OTTLA_SIM_REPLAYS=50 $(GO) test -count=1 -timeout 30m -run 'Seeds|Found|Replay' ./cmd/ottla/internal/simcluster

sim-brokers: ## three nodes that are only brokers, under a model of the controllers' quorum
	GOGC=300 OTTLA_SIM_SEEDS=$(SIM_BROKERS_SEEDS) $(GO) test -count=1 -timeout 30m -run 'Seeds|Replay' ./cmd/ottla/internal/simbrokers

soak-sim: ## seeds that nobody has run yet up to SOAK_SIM_LAST, with lines in testdata/soak/sim.txt; goes on where it was ended
	.ci/soak-sim sim $(SOAK_SIM_LAST)

soak-sim-cluster: ## the same of the replication among several, with lines in testdata/soak/simcluster.txt
	.ci/soak-sim simcluster $(SOAK_SIM_CLUSTER_LAST) 500

soak-sim-brokers: ## the same of the brokers under a model of their controllers, with lines in testdata/soak/simbrokers.txt
	.ci/soak-sim simbrokers $(SOAK_SIM_BROKERS_LAST)

fuzz: ## each target for FUZZ_TIME
	.ci/fuzz $(FUZZ_TIME)

soak-fuzz: ## each target for SOAK_FUZZ_TIME, with a line in testdata/soak/fuzz.txt; goes on where it was ended
	.ci/fuzz $(SOAK_FUZZ_TIME) testdata/soak/fuzz.txt

compat: build
	compat/run.sh clients

suites: build ## the tests that Go clients ship
	compat/run.sh suites

readme-table: ## compat/RESULTS.md out of the last `make compat`
	$(GO) run ./compat/table compat/results/clients.json

consumers: build ## clients with the group protocol consumer
	compat/run.sh consumers

tools: build
	compat/run.sh tools

applications: build ## Kafka Streams, a Kafka Connect worker, spring-kafka
	compat/run.sh applications

diff: build
	compat/run.sh diff

dumpcheck: build
	compat/run.sh dumpcheck

compaction: build
	compat/run.sh compaction

handover: build ## directories of three versions of Apache Kafka to Ottla and back
	compat/run.sh handover

cluster: build ## brokers of Ottla, alone and beside Apache Kafka's, under Apache Kafka's controllers
	compat/run.sh cluster

cluster-placement: build ## brokers of both kinds side by side: each leads, coordinates, hangs, is read from, is reassigned in turn
	compat/run.sh cluster-placement

cluster-directories: build ## brokers with two log directories that fail, hang and come back; who was killed and who left in order; needs root
	compat/run.sh cluster-directories

cluster-long: build ## the same in clusters of three brokers, two of the one kind and one of the other: OTTLA_CLUSTER_ROUNDS
	compat/run.sh cluster-long

cluster-move: build ## a cluster of Apache Kafka to Ottla and back, under load
	compat/run.sh cluster-move

cluster-move-long: build ## the same, measured, with a table in testdata/soak/clustermove.txt
	compat/run.sh cluster-move-long

crash: build
	compat/run.sh crash

many: build ## what many idle partitions cost, and many with records after kill -9: OTTLA_MANY_PARTITIONS=50000, see compat/run.sh
	compat/run.sh many

fulldisk: build ## small file systems are filled under load, others are frozen; needs root
	compat/run.sh fulldisk

powercut: build ## the power of a real ext4 and xfs is cut OTTLA_POWERCUTS times under load (5 unless told otherwise); needs root
	compat/run.sh powercut

edge: build ## bombs, floods, idle connections
	compat/run.sh edge

chaos: build ## clients of all kinds while the node is killed, stopped, suspended, slowed down
	compat/run.sh chaos

soak-chaos: build ## the same, for OTTLA_CHAOS_ROUNDS rounds of OTTLA_CHAOS_SECONDS; goes on where it ended
	compat/run.sh soak-chaos

chaos-cluster: build ## three brokers on machines and disks of their own (network namespaces, loop devices) under all faults of both; needs root
	compat/run.sh chaos-cluster

soak-chaos-cluster: build ## the same for OTTLA_CHAOS_ROUNDS rounds of OTTLA_CHAOS_SECONDS, with lines in testdata/soak/; goes on where it ended
	compat/run.sh soak-chaos-cluster

soak-eos: build ## Kafka Streams and copy loops, exactly once, for OTTLA_EOS_MINUTES under kill -9 of the node and of themselves
	compat/run.sh soak-eos

bench: build ## Ottla and Apache Kafka side by side; BENCH_FLAGS=-quick takes under 8 minutes
	compat/run.sh bench -out testdata/bench $(BENCH_FLAGS)

rebalance: build ## a hundred members, a thousand partitions, one killed; beside Apache Kafka
	compat/run.sh rebalance

rebalance-alone: build ## the same without Apache Kafka
	OTTLA_REBALANCE_ALONE=1 compat/run.sh rebalance

lag: build ## the metrics of consumer lag beside ConsumerGroupCommand
	compat/run.sh lag

control: ## record the same scenarios on Apache Kafka under testdata/control/
	compat/run.sh control

install: ## what the tests need
	compat/run.sh install

control-soak: ## record chaos and exactly once under faults on Apache Kafka under testdata/control/
	compat/run.sh control-soak

control-sample: ## a sample of the record comes out the same today
	compat/run.sh control-sample

clean:
	rm -rf bin build
