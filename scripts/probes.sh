#!/usr/bin/env bash
# Refreshes the probes that the tools carry. They are committed, so that `go install` and
# `go build` need no C compiler: sample/probe/lib/ARCH has the object and how it was built
# (sample/probe/lib/ARCH/built). An object is rebuilt if it does not belong to sample/probe/src any more,
# or with --force. DIR gets a copy of this machine's probe.
# Usage: scripts/probes.sh [--force] DIR
set -euo pipefail
cd "$(dirname "$0")/.."
name=libseedwalk_probe.so
[ "$(uname -s)" = Linux ] || exit 0
force=
[ "$1" != --force ] || { force=1; shift; }
dir=$1

sum() { sha256sum | cut -d' ' -f1; }

# Everything that decides what the objects are: TestCommittedProbeBelongsToSources adds up the same.
sources=$(cd sample/probe/src && export LC_ALL=C && sha256sum ./*.c ./*.h build.sh | sed 's|\./||' | sort -k2 | sum)

# current FOLDER: its object was built from these sources.
current() {
	[ -z "$force" ] && [ -f "$1/$name" ] && [ -f "$1/built" ] &&
		grep -qx "sources $sources" "$1/built" && grep -qx "object $(sum <"$1/$name")" "$1/built"
}

# describe OBJECT CC: how it was built.
describe() {
	echo "sources $sources"
	echo "object $(sum <"$1")"
	echo "compiler $("$2" --version | sed -n '1s/^[^ ]* //p')"
	echo "linker $("$("$2" -print-prog-name=ld)" --version | sed -n 1p)"
}

here=$(uname -m)
for pair in x86_64:amd64 aarch64:arm64; do
	machine=${pair%:*} folder=sample/probe/lib/${pair#*:} cc=gcc
	[ "$machine" = "$here" ] || cc=$machine-linux-gnu-gcc
	if ! current "$folder"; then
		if ! command -v "$cc" >/dev/null; then
			echo "probes: $folder/$name does not belong to sample/probe/src, and there is no $cc to rebuild it; make probe installs one" >&2
			[ "$machine" != "$here" ] || exit 1
			continue
		fi
		CC=$cc sample/probe/src/build.sh "$folder/$name"
		describe "$folder/$name" "$cc" >"$folder/built"
		echo "probes: $folder/$name is new: commit it"
	fi
	[ "$machine" != "$here" ] || cmp -s "$folder/$name" "$dir/$name" || { rm -f "$dir/$name" && cp "$folder/$name" "$dir/$name"; }
done
