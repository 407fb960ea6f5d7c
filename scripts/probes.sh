#!/usr/bin/env bash
# Builds the probes: the one of this machine into the folder named, and those that the tools
# of each architecture carry, as far as there are compilers.
# Usage: scripts/probes.sh DIR
set -euo pipefail
cd "$(dirname "$0")/.."
name=libseedwalk_probe.so
[ "$(uname -s)" = Linux ] || exit 0
here=$(uname -m)
for pair in x86_64:amd64 aarch64:arm64; do
	machine=${pair%:*} folder=probe/lib/${pair#*:}
	if [ "$machine" = "$here" ]; then
		probe/src/build.sh "$1/$name" "$folder/$name"
	elif command -v "$machine-linux-gnu-gcc" >/dev/null; then
		CC=$machine-linux-gnu-gcc probe/src/build.sh "$folder/$name"
	fi
done
