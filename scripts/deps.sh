#!/usr/bin/env bash
# Installs the Debian packages that are missing: the C# compiler for the sample
# programs, libunwind and libdw as peers and oracles of the tests.
# Usage: scripts/deps.sh [demo|test]
set -euo pipefail

declare -A command_of=([mono-mcs]=mcs [gcc]=gcc [openssl]=openssl [npm]=npm)
declare -A header_of=([libunwind-dev]=libunwind.h [libdw-dev]=elfutils/libdw.h)

need=(gcc mono-mcs openssl npm)
[ "${1:-test}" = demo ] || need+=(libunwind-dev libdw-dev)

missing=()
for p in "${need[@]}"; do
	if [ -n "${command_of[$p]:-}" ]; then
		command -v "${command_of[$p]}" >/dev/null || missing+=("$p")
	else
		ls /usr/include/"${header_of[$p]}" /usr/include/*/"${header_of[$p]}" >/dev/null 2>&1 || missing+=("$p")
	fi
done
[ ${#missing[@]} -eq 0 ] && exit 0

sudo=
if [ "$(id -u)" != 0 ]; then
	sudo=$(command -v sudo) || { echo "deps: missing ${missing[*]}; as root: apt-get install ${missing[*]}" >&2; exit 1; }
fi
echo "deps: installing ${missing[*]}"
log=$(mktemp)
if ! { $sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
	echo "deps: apt-get could not install ${missing[*]}: $(grep -m1 '^E:' "$log" || tail -n 1 "$log")" >&2
	exit 1
fi
rm -f "$log"
