#!/usr/bin/env bash
# Runs every test and says what was skipped. go test's own summary is last.
set -uo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test -json -timeout 25m ./... >"$log"
status=$?
go run ./internal/summary <"$log"
exit $status
