# The targets a newcomer needs are demo and test; the rest are parts of them.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
GO ?= go
OUT := out
SECONDS_OF_DEMO ?= 8
VECTORS ?= ../shared/vectors
FUZZTIME ?= 20s
# As make build has it: tests, lint, and products share the compiled packages, in each checkout.
export GOFLAGS := -trimpath $(filter-out -trimpath,$(shell $(GO) env GOFLAGS))

.PHONY: six figures dumps diff-runs explore long healthy never-nothing demo-gaps arm64 stepped worlds soak-examples bench-pair bench-copies bench-cost bias truth survive rules big-trace demo demo-windows dist test build probe samples windows runtime lint vectors bench fuzz check mutate test-windows soak clean help

help: ## say what there is
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 14

demo: ## sample a real .NET program and show its complete stacks
	@scripts/deps.sh demo
	@scripts/runtime-dir.sh >/dev/null 2>&1 || scripts/fetch.sh dotnet-9.0.5
	@$(MAKE) --no-print-directory build samples
	@$(OUT)/bin/seedwalk record --rate 200 --tree \
		--output $(OUT)/demo.pb.gz,$(OUT)/demo.folded,$(OUT)/demo.html \
		-- $(OUT)/bin/swhost "$$(scripts/runtime-dir.sh)" $(OUT)/samples/Demo.exe $(SECONDS_OF_DEMO)

demo-windows: ## the same for Windows: a real .NET Core 2.2 for Windows, run by Wine
	@scripts/deps.sh windows
	@scripts/fetch.sh dotnet-2.2.2-win
	@scripts/wine.sh prepare
	@scripts/samples-windows.sh
	@scripts/wine.sh exec $(OUT)/windows/seedwalk.exe record --rate 50 --tree \
		--output $(OUT)/demo-windows.pb.gz,$(OUT)/demo-windows.folded,$(OUT)/demo-windows.html \
		-- $(OUT)/windows/swhost.exe .cache/dotnet-2.2.2-win/package/shared/Microsoft.NETCore.App/2.2.2 $(OUT)/windows/Demo.exe $(SECONDS_OF_DEMO)

build: ## the tool, the probe and the profiler library, into out/bin
	@mkdir -p $(OUT)/bin
	@scripts/probes.sh $(OUT)/bin
	@$(GO) build -trimpath -o $(OUT)/bin/seedwalk ./cmd/seedwalk
	@GO=$(GO) scripts/library.sh c-shared -o $(OUT)/bin/libseedwalk_profiler.so ./profiler

probe: ## rebuild the probes that are committed (sample/probe/lib), for x86-64 and ARM64
	@scripts/deps.sh probe
	@mkdir -p $(OUT)/bin
	@scripts/probes.sh --force $(OUT)/bin

AGENT_LONG ?= 1h
.PHONY: agent-long release test-release test-collector test-agent release-check
dist: release ## all libraries and programs for all platforms, with checksums, into out/dist; packages into out/release
	@scripts/dist.sh

release: ## static tools, deb, rpm, apk, OCI image, SBOM, and checksums, into out/release
	@scripts/release.sh

test-collector: runtime build samples ## the agent sends to a real OpenTelemetry collector that restarts, by HTTP and gRPC
	@scripts/collector.sh >/dev/null
	@$(GO) test -count=1 -v -timeout 10m -run TestAgentCollector ./profiler/e2e

test-agent: runtime build samples ## 10,000 short processes under the agent: none is harmed, and the agent keeps nothing of them
	@$(GO) test -count=1 -v -timeout 90m -run TestAgentShort ./profiler/e2e -agent-processes 10000

agent-long: runtime build samples ## AGENT_LONG (1h): two processes sent to a real collector, all parts restart; then twenty processes
	@scripts/collector.sh >/dev/null
	@$(GO) test -count=1 -v -timeout 600m -run 'TestAgent(Hour|Flat)' ./profiler/e2e -agent-long $(AGENT_LONG)

test-release: build samples ## build the packages twice, compare, install, record with each, and remove
	@$(GO) test -count=1 -v -timeout 20m -run TestPackages ./testkit/tools/release -packages

release-check: ## the checklist before a tag: make release-check VERSION=v0.9.0
	@scripts/release-check.sh "$(VERSION)"

samples: ## the sample programs, into out/samples
	@scripts/samples.sh

windows: ## what runs on Windows, into out/windows
	@scripts/samples-windows.sh

runtime: ## the runtimes and tools that the tests need, into .cache
	@scripts/deps.sh test
	@scripts/fetch.sh

six: runtime build samples ## record six programs of public packages: how much CPU self time has neither a name nor a role
	@$(GO) test -count=1 -v -timeout 60m -run 'TestSixPrograms' ./profiler/e2e -six

diff-runs: build samples ## compare 100 pairs of runs of one program: at least 95 do not differ
	@$(GO) test -count=1 -v -timeout 120m -run 'TestDiffRuns' ./profiler/e2e -diff-pairs 100

figures: ## the shape of the code: layers, import cycles, folders, packages, lines, duplicates
	@set -o pipefail; $(GO) test -count=1 -v -run 'TestImportEdges|TestFloors|TestExactEdges|TestSizes' ./testkit/arch | sed -n 's/^ *[a-z_]*\.go:[0-9]*: //p'

lint: ## gofmt, go vet, staticcheck, the C compiler at its strictest, and the text of new lines
	@bad=$$(git ls-files '*.go' | xargs gofmt -l); [ -z "$$bad" ] || { echo "gofmt: $$bad"; exit 1; }
	@scripts/vet.sh
	@scripts/staticcheck.sh
	@scripts/lint-c.sh
	@$(GO) run ./testkit/tools/textlint

.PHONY: products
products: runtime # two at a time: the compiler of C# uses one processor
	@$(MAKE) --no-print-directory -j2 build samples windows

test: products ## lint, unit tests, recorded truth, and each main job on a real runtime: about ten minutes
	@scripts/test.sh quick

check: products ## all other tests: every runtime and every way; half an hour
	@scripts/test.sh rest

vectors: build ## the recorded truth: what share is right, file by file
	@$(OUT)/bin/seedwalk replay testkit/testdata/pe
	@if [ -d "$(VECTORS)" ]; then $(OUT)/bin/seedwalk replay $(VECTORS)/pe $(VECTORS)/elf; \
	else echo "SKIPPED-CHECK: no $(VECTORS): the recorded truth with third-party files is not replayed"; fi

bench: runtime build samples ## speed, beside the peers
	@scripts/framehop.sh
	@$(GO) test -run '^$$' -bench . -benchmem ./cfi ./pe ./unwind/... ./clr/managed ./stack/seed ./stack/merge ./unwind/module ./bench/...

bench-pair: ## the same rows beside those of another checkout: make bench-pair BASE=../old
	@test -n "$(BASE)" || { echo "bench-pair: BASE=folder of the checkout to compare with"; exit 2; }
	@$(GO) run ./testkit/tools/benchpair -base "$(BASE)" $(BENCHPAIR)

big-trace: ## a trace of 1 GB, generated while it is read: bounded memory, and speed
	@$(GO) test -count=1 -run 'TestBig$$' -v ./eventpipe/nettrace -big 1024
	@$(GO) test -run '^$$' -bench Read ./eventpipe/nettrace
	@$(GO) test -count=1 -run 'TestBig$$' -v ./eventpipe/waits -big 1024
	@$(GO) test -count=1 -run 'TestBig$$' -v ./report/trace -big 1024

fuzz: ## every fuzz target for FUZZTIME (20s), one after the other
	@scripts/fuzz.sh $(FUZZTIME)

explore: ## the C of the probe and the profiler under every order and every memory order: the large worlds, and which memory orders are needed (minutes)
	@$(GO) test -count=1 -v -timeout 60m -run 'TestWorlds|TestOrders|TestLitmus' ./sim/native -explore
	@$(GO) test -count=1 -v -timeout 60m -run 'TestKept|TestWhole' ./sim/rules -explore

mutate: ## change the code at random places, one by one, and show what no test notices (MUTATE="-packages cfi -n 30 -seed 1")
	@$(GO) run ./testkit/tools/mutate $(MUTATE)

test-windows: runtime windows ## minutes of real Windows runtimes, by Wine: threads of all kinds, threads that churn
	@$(GO) test -count=1 -v -timeout 60m -run Windows ./profiler/e2e -windows-judged 6000
	@$(GO) test -count=1 -v -timeout 60m -run 'TestWindowsOutside' ./profiler/e2e -windows-outside 3000

soak: runtime build samples windows ## a minute of each stress test
	@$(GO) test -count=1 -v -timeout 30m -run 'TestSoak|TestWindowsTorture$$|TestWindowsChurn' ./profiler/e2e -soak 60s -torture 60s -churn 60s

soak-examples: runtime build samples windows ## a minute of each sample profiler on each runtime, judged stack by stack; all shares of the client library
	@$(GO) test -count=1 -v -timeout 90m -run 'Test((Windows)?Sampler(EndedThreads)?|Client(Bias)?)$$' ./profiler/e2e -sampler-seconds 60 -sampler-all -sampler-windows 3000

bench-copies: runtime build samples ## how many stacks a second a program can copy in callbacks (needs a quiet machine)
	@$(GO) test -count=1 -v -run 'TestCopyRate' ./profiler/e2e -copy-rate 120000 -copy-seconds 20

bench-cost: runtime build samples ## what sampling costs programs, both ways at 100 and 1,000 Hz (needs a quiet machine)
	@$(GO) run ./testkit/tools/cost $(COST)

# Before a release, and after a change of the walkers, the probe, or a sampler.
long: runtime build samples windows ## the tests of real programs with the sizes for a release (an hour; LONG=flags)
	@$(GO) test -count=1 -timeout 180m ./profiler/e2e -soak 15s -torture 15s -churn 15s -arm64 400 -windows-judged 2000 \
		-windows-outside 200 -sampler-windows 500 -sampler 3000 -truth 2500 -copies 5000 -now 1000 -attachments 4 -tasks-each 300 -six -client-runs 2 $(LONG)
	@$(GO) test -count=1 -timeout 30m -run TestInCLR ./capi -clr-runs 3

worlds: ## 10,000 of the simulator's worlds, by the engine and through the C library; 100,012 with bad contexts on each architecture (an hour)
	@scripts/deps.sh test
	@$(GO) test -count=1 -v -timeout 60m -run 'TestWorlds' ./sim/worlds -worlds 10000
	@$(GO) test -count=1 -v -timeout 60m -run 'TestWorlds' ./capi -worlds 10000
	@$(GO) test -count=1 -v -timeout 120m -run 'TestBadSeeds' ./sim/worlds -damaged 4546

# It fails on the clock of old: make bias BIAS="-bias-clock timer-overrun -bias-rows async3 -bias-runs 2".
bias: runtime build samples ## CPU time by method against exact clocks, beside perf and the old clock (three hours; BIAS=flags)
	@$(GO) test -count=1 -v -timeout 600m -run 'TestBias|TestShort' ./profiler/e2e -bias-total 0.01 -bias-rows all -bias-runs 5 -bias-time 3s -bias-samples 2000 -bias-rates 99,1000 -bias-loads idle,loaded -bias-beside $(BIAS)

demo-gaps: build samples ## 20 recordings of the demo: none has a gap
	@scripts/demo-gaps.sh

never-nothing: runtime build samples ## the simplest programs: 1,000 stacks and 1,000 recordings of each, the first sample within 100 ms
	@$(GO) test -count=1 -v -timeout 600m -run 'TestNeverNothing' ./profiler/e2e -simple-tries 1000 $(SIMPLE)

dumps: runtime build samples ## stacks of every kind of dump of every runtime, and 10,000 damaged dumps
	@$(GO) test -count=1 -v -timeout 60m -run 'TestStackOfDumps' ./profiler/e2e -all-dumps
	@$(GO) test -count=1 -v -timeout 120m -run 'TestMutatedDumps' ./cmd/seedwalk/stack -mutated-dumps 5000

healthy: runtime build samples ## hang judges 73 healthy programs five times each, and accuses none; each kind of hang on both runtimes
	@$(GO) test -count=1 -v -timeout 60m -run 'TestHang$$|TestHangHealthy' ./profiler/e2e -healthy-every 1 -healthy-looks 5

truth: runtime build samples ## 60,000 stacks of programs that know their own, by the default way: scenario by scenario, and the sum
	@$(GO) test -count=1 -v -timeout 120m -run 'TestProbeTruth' ./profiler/e2e -truth 10000

survive: runtime build samples ## half an hour of stress tests on each runtime, with the probe in the program
	@$(GO) test -count=1 -v -timeout 90m -run 'TestProbeSurvives$$' ./profiler/e2e -survive 30m
	@$(GO) test -count=1 -v -timeout 120m -run 'TestProbe(Truth|SurvivesGo|Few|Exec|Kill)' ./profiler/e2e -survive 60s -truth 10000 -kills 200
	@$(GO) test -count=1 -v -timeout 20m -run 'TestReported' ./sample/paused -reported 12000

arm64: build samples runtime ## 20,000 stacks of a CLR of ARM64 under qemu, interrupted at any instruction; its unwind codes; a core
	@$(GO) test -count=1 -v -timeout 180m -run 'TestARM64' ./profiler/e2e -arm64 20000

stepped: ## two million instructions of programs in 266 builds, ELF and PE, x86-64 and ARM64: a walk at each, compared with the truth
	@scripts/deps.sh stepped
	@$(GO) test -count=1 -v -timeout 180m ./testkit/stepper -all

rules: build ## write docs/rules.md from the simulator's scenarios
	@$(OUT)/bin/seedwalk sim --docs docs

clean: ## remove what was built (not .cache)
	@rm -rf $(OUT)
