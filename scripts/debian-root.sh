#!/usr/bin/env bash
# Makes a fresh Debian for the tests, once, as root, and prints the path of its tar.
# Usage: scripts/debian-root.sh
set -euo pipefail
cd "$(dirname "$0")/.."

tar=$PWD/.cache/tools/debian-bookworm.tar
if [ ! -f "$tar" ]; then
	command -v debootstrap >/dev/null || PATH=$PATH:/usr/sbin
	mkdir -p "$(dirname "$tar")"
	root=$(mktemp -d)
	trap 'rm -rf "$root"' EXIT
	if ! log=$(debootstrap --variant=minbase bookworm "$root" http://deb.debian.org/debian 2>&1); then
		echo "debian-root: $(tail -n 1 <<<"$log")" >&2
		exit 1
	fi
	rm -rf "$root"/var/cache/apt "$root"/var/lib/apt/lists "$root"/dev
	tar -C "$root" -cf "$tar.part" .
	mv "$tar.part" "$tar"
fi
echo "$tar"
