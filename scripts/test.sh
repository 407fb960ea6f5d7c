#!/usr/bin/env bash
# Runs every test and says what was skipped. go test's own summary is last.
set -uo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
e2e=$(go list ./profiler/e2e)
go test -json -timeout 15m $(go list ./... | grep -vxF "$e2e") >"$log" || status=$?
# Alone: these tests measure a running program.
go test -json -timeout 40m "$e2e" >>"$log" || status=$?
# Where goroutines meet, once more with the race detector.
go test -json -race -timeout 10m -skip '^TestWine' ./record ./wire ./cmd/seedwalk >>"$log" || status=$?
# Another reader of traces, in a module of its own.
(cd nettrace/oracle && go test -json ./...) >>"$log" || status=$?
# What is of no system, once more as Windows programs.
scripts/test-wine.sh -json >>"$log" || status=$?
go run ./internal/tools/summary <"$log"
exit $status
