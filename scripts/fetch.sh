#!/usr/bin/env bash
# Fetches the pinned .NET runtimes into .cache, once; checks their hashes.
# Usage: scripts/fetch.sh [FOLDER...]   (default: all of scripts/packages.txt)
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=
trap '[ -z "$tmp" ] || rm -rf "$tmp"' EXIT
die() { echo "fetch: $*" >&2; exit 1; }

# one NAME VERSION FOLDER INTEGRITY [PART]
one() {
	local name=$1 version=$2 target=.cache/$3 want=${4#sha512-} part=${5:-} file got why
	[ -f "$target/.ok" ] && return 0
	command -v npm >/dev/null || die "npm is missing; install it (apt-get install npm) or set DOTNET_ROOT"
	mkdir -p .cache
	tmp=$(mktemp -d .cache/fetch.XXXXXX)
	echo "fetch: $name@$version -> $target"
	if ! file=$(cd "$tmp" && npm pack --loglevel=error "$name@$version" 2>npm.log); then
		why=$(sed -nE 's/^npm (ERR!|error) //p' "$tmp/npm.log" | head -n 2 | paste -sd' ' -)
		die "npm pack $name@$version failed: ${why:-no reason given}; is the npm registry reachable?"
	fi
	got=$(openssl dgst -sha512 -binary "$tmp/$file" | base64 -w0)
	[ "$got" = "$want" ] || die "$name@$version has hash sha512-$got, not sha512-$want; nothing was unpacked"
	mkdir "$tmp/x"
	tar -xzf "$tmp/$file" -C "$tmp/x" ${part:+"$part"}
	chmod +x "$tmp"/x/package/dist/azmcp "$tmp"/x/package/dist/createdump 2>/dev/null || true
	touch "$tmp/x/.ok"
	rm -rf "$target"
	mv "$tmp/x" "$target"
	rm -rf "$tmp"
}

for folder in "$@"; do
	awk -v f="$folder" '$3 == f { found = 1 } END { exit !found }' scripts/packages.txt ||
		die "scripts/packages.txt has no folder $folder"
done
while read -r name version folder integrity part; do
	case "$name" in '#'* | '') continue ;; esac
	if [ $# -eq 0 ] || [[ " $* " == *" $folder "* ]]; then
		one "$name" "$version" "$folder" "$integrity" "$part"
	fi
done <scripts/packages.txt
