#!/bin/sh
# Makes the pictures in docs/ again, from a recording of the demo: scripts/pictures.sh [FILE.swrec]
# It needs chromium, and the tool and the samples (make build samples).
set -eu
cd "$(dirname "$0")/.."
tool=out/bin/seedwalk
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
file=${1:-$work/demo.swrec}
[ $# -gt 0 ] || $tool record --quiet --rate 499 --output "$file" -- out/bin/swhost "$(scripts/runtime-dir.sh)" out/samples/Demo.exe 8 >/dev/null
$tool convert "$file" "$work/demo.html" >/dev/null

# picture NAME VIEW SCHEME: a view is what the page's address has behind #; scheme 1 is light, 0 dark.
picture() {
	chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --hide-scrollbars \
		--user-data-dir="$work/user" --virtual-time-budget=3000 --window-size=1200,640 --blink-settings=preferredColorScheme="$3" \
		--screenshot="$PWD/docs/$1.png" "file://$work/demo.html#$2" >/dev/null 2>&1
	size=$(wc -c <"docs/$1.png")
	[ "$size" -le 150000 ] || { echo "docs/$1.png has $size bytes, at most 150000 are right" >&2; exit 1; }
	echo "docs/$1.png: $size bytes"
}

picture flamegraph "v=flame" 1
picture top "v=top" 1
picture threads "v=threads" 0
picture inverted "v=flame&i=1" 0
