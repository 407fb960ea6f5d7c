#!/usr/bin/env bash
# The checklist before a tag is set. Every line is ok or what is missing. It changes nothing.
# Usage: scripts/release-check.sh v1.2.3
set -uo pipefail
cd "$(dirname "$0")/.."
version=${1:-}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ ]] || { echo "release-check: name the version: scripts/release-check.sh v1.2.3" >&2; exit 2; }
short=${version#v}
short=${short%.0}
missing=0

# check TEXT COMMAND...: the command succeeds.
check() {
	local text=$1
	shift
	if "$@" >/dev/null 2>&1; then
		echo "ok       $text"
	else
		echo "MISSING  $text"
		missing=1
	fi
}
clean() { [ -z "$(git status --porcelain)" ]; }
untagged() { ! git rev-parse -q --verify "refs/tags/$version"; }
section() { grep -q "^## ${short//./\\.}\\b" CHANGELOG.md; }
tidy() { go mod tidy -diff; }
verified() { go mod verify && (cd scripts/nfpm && go mod verify); }

check "the work tree has no change" clean
check "the tag $version does not exist" untagged
check "CHANGELOG.md has a section $short" section
check "go.mod is tidy" tidy
check "modules have the hashes of go.sum" verified
for arch in amd64 arm64; do
	check "go vet has no complaint about Windows $arch without C" env GOOS=windows GOARCH=$arch CGO_ENABLED=0 go vet ./...
done
check "the committed probe belongs to its sources" go test -run 'TestCommittedProbeBelongsToSources' ./sample/probe/...
check "the packages are reproducible, record, and leave nothing behind (make test-release)" make test-release
check "a real OpenTelemetry collector gets all profiles (make test-collector)" make test-collector
if [ $missing = 0 ]; then
	echo "next: make test && make check && make long worlds, git tag -a $version, make dist, publish out/release"
fi
exit $missing
