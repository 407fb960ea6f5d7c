#!/usr/bin/env bash
# Prints the folder of the .NET runtime to use: of DOTNET_ROOT, of the dotnet on
# PATH, else the pinned one in .cache. SEEDWALK_PINNED=1 takes the pinned one.
set -euo pipefail
cd "$(dirname "$0")/.."

root=${DOTNET_ROOT:-}
if [ -z "$root" ] && command -v dotnet >/dev/null; then
	root=$(dirname "$(readlink -f "$(command -v dotnet)")")
fi
if [ -n "$root" ] && [ -z "${SEEDWALK_PINNED:-}" ]; then
	dir=$(ls -d "$root"/shared/Microsoft.NETCore.App/*/ 2>/dev/null | sort -V | tail -n 1) || true
	if [ -n "$dir" ] && [ -f "$dir/libcoreclr.so" ]; then
		echo "${dir%/}"
		exit 0
	fi
	echo "runtime-dir: no shared/Microsoft.NETCore.App/*/libcoreclr.so below $root; using the pinned runtime" >&2
fi
dir=.cache/dotnet-9.0.5/package/dist # from the top of the tree: shown in profiles
[ -f "$dir/libcoreclr.so" ] || { echo "runtime-dir: no .NET runtime; run scripts/fetch.sh or set DOTNET_ROOT" >&2; exit 1; }
echo "$dir"
