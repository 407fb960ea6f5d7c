#!/usr/bin/env bash
# Compiles every C file of ours with all warnings as errors. cgo's own glue
# needs one exception when it is built; our code does not.
set -euo pipefail
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for dir in profiler capi; do
	ls $dir/*.c >/dev/null 2>&1 || continue
	mkdir -p "$tmp/$dir"
	go tool cgo -exportheader "$tmp/$dir/_cgo_export.h" -objdir "$tmp/$dir" -importpath x $(go list -f '{{range .CgoFiles}}'$dir'/{{.}} {{end}}' ./$dir) 2>/dev/null ||
		(cd $dir && go tool cgo -exportheader "$tmp/$dir/_cgo_export.h" -objdir "$tmp/$dir" $(go list -f '{{range .CgoFiles}}{{.}} {{end}}' .))
	for f in $dir/*.c; do
		gcc -std=gnu11 -O2 -Wall -Wextra -Werror -fPIC -I"$tmp/$dir" -I$dir -c "$f" -o "$tmp/o.o"
	done
done
