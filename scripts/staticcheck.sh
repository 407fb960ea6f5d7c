#!/usr/bin/env bash
# Runs staticcheck, of a pinned version, over all Go code: as Linux sees it, as
# Windows does, and with the tags of the tests' own builds.
# Usage: scripts/staticcheck.sh [PACKAGE...]
set -euo pipefail
cd "$(dirname "$0")/.."

version=v0.8.2
tool=$PWD/.cache/tools/staticcheck-$version
if [ ! -x "$tool" ]; then
	bin=$(mktemp -d)
	trap 'rm -rf "$bin"' EXIT
	if ! log=$(GOBIN=$bin GOFLAGS=-mod=mod go install "honnef.co/go/tools/cmd/staticcheck@$version" 2>&1); then
		echo "SKIPPED-CHECK: staticcheck $version could not be had: $(tail -n 1 <<<"$log")"
		exit 0
	fi
	mkdir -p "$(dirname "$tool")"
	mv "$bin/staticcheck" "$tool"
fi

[ $# -gt 0 ] || set -- ./...
"$tool" "$@"
"$tool" -tags oracle,torture "$@"
GOOS=windows GOARCH=amd64 CGO_ENABLED=0 "$tool" "$@"
