#!/usr/bin/env bash
# Runs staticcheck, of a pinned version, over all Go code: as Linux sees it, as
# Windows does, and the tests' own builds of the profiler library.
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
# What only Linux uses is unused there: of that only Windows' own files count.
found=$(GOOS=windows GOARCH=amd64 CGO_ENABLED=0 "$tool" "$@" | awk '!/\(U1000\)$/ || $1 ~ /windows/') || true
[ -z "$found" ] || { echo "$found"; exit 1; }
mingw=x86_64-w64-mingw32-gcc
if ! command -v $mingw >/dev/null; then
	echo "SKIPPED-CHECK: no $mingw: the tests' builds of the profiler library are not checked"
	exit 0
fi
copy=out/_staticcheck # vet's tools do not look through an overlay at files with C
trap 'rm -rf "$copy" "${bin:-}"' EXIT
for test in torture oracle; do
	rm -rf "$copy" && mkdir -p "$copy"
	cp profiler/host/*.go profiler/host/*.[ch] "$copy"
	cp profiler/e2e/testprof/$test/*.{go,c,h} "$copy"
	GOOS=windows GOARCH=amd64 CGO_ENABLED=1 CC=$mingw "$tool" -tags $test ./$copy
done
