#!/usr/bin/env bash
# go vet of all packages as this system sees them. As Windows sees them: of those with files of their own for it.
# As ARM64 sees them: of those with files of their own for it, and of those that import one; the compiler checks the
# others, but not their tests. staticcheck checks the types of all for Windows; without it, all are vetted.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}

# ownPackages lists the packages with files of their own for GOOS, GOARCH, and CGO_ENABLED.
ownPackages() {
	local format='{{.ImportPath}} {{.GoFiles}} {{.CgoFiles}} {{.SFiles}} {{.TestGoFiles}} {{.XTestGoFiles}}'
	comm -13 <(GOOS= GOARCH= $go list -f "$format" ./... | sort) <($go list -f "$format" ./... | sort) | cut -d' ' -f1
}

# withImporters lists these and the packages that import one.
withImporters() {
	awk 'NR == FNR { own[$1]; next } { gsub(/[][]/, ""); for (i = 1; i <= NF; i++) if ($i in own) { print $1; next } }' \
		<(ownPackages) <($go list -f '{{.ImportPath}} {{.Imports}} {{.TestImports}} {{.XTestImports}}' ./...)
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
	packages=$(withImporters)
	# shellcheck disable=SC2086
	vet ${packages:?no package for ARM64}
)
if command -v x86_64-w64-mingw32-gcc >/dev/null; then
	export GOOS=windows GOARCH=amd64 CGO_ENABLED=1 CC=x86_64-w64-mingw32-gcc
	packages=$(ownPackages)
	compgen -G '.cache/tools/staticcheck*' >/dev/null || packages=./...
	# shellcheck disable=SC2086
	vet ${packages:?no package for Windows}
else
	echo "SKIPPED-CHECK: no x86_64-w64-mingw32-gcc: Go with C is not vetted for Windows"
fi
