#!/usr/bin/env bash
# Builds an OpenTelemetry collector of pinned modules for the tests, once, and prints its path.
# Usage: scripts/collector.sh [built]    (built: it fails unless the collector is there)
set -euo pipefail
cd "$(dirname "$0")/.."

source=report/export/otlp/testdata/oracle
tool=$PWD/.cache/tools/collector-$(cat "$source/go.sum" "$source/collector/main.go" | sha256sum | cut -c1-12)
if [ ! -x "$tool" ]; then
	[ "${1:-}" != built ] || exit 1
	mkdir -p "$(dirname "$tool")"
	if ! log=$(cd "$source" && go build -mod=readonly -trimpath -o "$tool" ./collector 2>&1); then
		echo "collector: its modules could not be had: $(tail -n 1 <<<"$log")" >&2
		exit 1
	fi
fi
echo "$tool"
