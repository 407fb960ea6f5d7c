#!/usr/bin/env bash
# Builds the probe into the files named. CC says for which architecture: x86-64 or ARM64.
# Loops are not aligned, so that the object needs a page less.
# The object depends on the sources and the versions of compiler and linker only: it has no
# path, time, build id, or name of a compiler in it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp)
trap 'rm -f "$tmp"' EXIT
cc=${CC:-gcc}
case $($cc -dumpmachine) in
aarch64*) arch="-mbranch-protection=none -mno-outline-atomics" ;;
*) arch="-fcf-protection=none" ;;
esac
# shellcheck disable=SC2086
$cc -std=c11 -Wall -Wextra -Werror -O2 -shared -fPIC -ffreestanding -fno-builtin -fno-stack-protector \
	$arch -fasynchronous-unwind-tables -fvisibility=hidden -nostdlib -mgeneral-regs-only \
	-fno-tree-loop-distribute-patterns -fno-ident -fno-align-loops -fno-align-jumps -ffile-prefix-map="$here"=. \
	-Wl,--hash-style=both -Wl,-z,now -Wl,-Bsymbolic -Wl,--build-id=none -Wl,-z,nodelete -Wl,-z,noexecstack -Wl,-z,noseparate-code \
	-s -o "$tmp" "$here/profiler.c" "$here/start.c" "$here/handler.c" "$here/copy.c" "$here/objects.c" "$here/events.c" "$here/dropped.c" "$here/session.c" "$here/relay.c" "$here/read.c"
for out; do # what is loaded somewhere must not be written over
	cmp -s "$tmp" "$out" || { rm -f "$out" && cp "$tmp" "$out" && chmod 755 "$out"; }
done
