#!/usr/bin/env bash
# Fetches the pinned .NET runtimes into .cache, once; checks their hashes.
# Usage: scripts/fetch.sh [FOLDER...]   (default: all of scripts/packages.txt)
set -euo pipefail
cd "$(dirname "$0")/.."

die() { echo "fetch: $*" >&2; exit 1; }

# one NAME VERSION FOLDER INTEGRITY
one() {
	local name=$1 version=$2 target=.cache/$3 want=${4#sha512-} tmp file got
	[ -f "$target/.ok" ] && return 0
	command -v npm >/dev/null || die "npm is missing; install it (apt-get install npm) or set DOTNET_ROOT"
	mkdir -p .cache
	tmp=$(mktemp -d .cache/fetch.XXXXXX)
	trap 'rm -rf "$tmp"' RETURN
	echo "fetch: $name@$version -> $target"
	file=$(cd "$tmp" && npm pack --silent "$name@$version" 2>npm.log) ||
		die "npm pack $name@$version failed: $(tail -n 1 "$tmp/npm.log"); is the npm registry reachable?"
	got=$(openssl dgst -sha512 -binary "$tmp/$file" | base64 -w0)
	[ "$got" = "$want" ] || die "$name@$version has hash sha512-$got, not sha512-$want; nothing was unpacked"
	mkdir "$tmp/x"
	tar -xzf "$tmp/$file" -C "$tmp/x"
	chmod +x "$tmp"/x/package/dist/azmcp "$tmp"/x/package/dist/createdump 2>/dev/null || true
	touch "$tmp/x/.ok"
	rm -rf "$target"
	mv "$tmp/x" "$target"
}

while read -r name version folder integrity; do
	case "$name" in '#'* | '') continue ;; esac
	if [ $# -eq 0 ] || [[ " $* " == *" $folder "* ]]; then
		one "$name" "$version" "$folder" "$integrity"
	fi
done <scripts/packages.txt
