#!/usr/bin/env bash
# go vet of all packages as this system sees them. As Windows sees them: of those with files of their own for it;
# staticcheck checks the types of all. As ARM64 sees them: of those with files of their own for it, and of those that
# import one; the compiler checks the others.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}

# own lists the packages with files of their own for GOOS, GOARCH, and CGO_ENABLED.
own() {
	local format='{{.ImportPath}} {{.GoFiles}} {{.CgoFiles}} {{.SFiles}} {{.TestGoFiles}} {{.XTestGoFiles}}'
	comm -13 <(GOOS= GOARCH= $go list -f "$format" ./... | sort) <($go list -f "$format" ./... | sort) | cut -d' ' -f1
}

# with adds the packages that import one of these.
with() {
	awk 'NR == FNR { own[$1]; next } { gsub(/[][]/, ""); for (i = 1; i <= NF; i++) if ($i in own) { print $1; next } }' \
		<(own) <($go list -f '{{.ImportPath}} {{.Imports}} {{.TestImports}} {{.XTestImports}}' ./...)
}

# vet PACKAGE...: with GOFLAGS=-trimpath, files that cgo has written may be those of another checkout. Only the check
# of calls of C reads what they were written from.
vet() {
	local c
	c=$($go list -f '{{if .CgoFiles}}{{.ImportPath}}{{end}}' "$@")
	$go vet -cgocall=false "$@"
	# shellcheck disable=SC2086
	[ -z "$c" ] || GOFLAGS=-trimpath=false $go vet -cgocall $c
}

vet ./...
(
	export GOOS=linux GOARCH=arm64 CGO_ENABLED=0
	$go build ./...
	# shellcheck disable=SC2046
	vet $(with)
)
if command -v x86_64-w64-mingw32-gcc >/dev/null; then
	export GOOS=windows GOARCH=amd64 CGO_ENABLED=1 CC=x86_64-w64-mingw32-gcc
	# shellcheck disable=SC2046
	vet $(own)
else
	echo "SKIPPED-CHECK: no x86_64-w64-mingw32-gcc: Go with C is not vetted for Windows"
fi
