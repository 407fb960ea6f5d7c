#!/usr/bin/env bash
# Builds the probe into the file named.
set -euo pipefail
out=$1
[ "${out#/}" != "$out" ] || out=$PWD/$out
cd "$(dirname "$0")"
${CC:-gcc} -std=c11 -Wall -Wextra -Werror -O2 -shared -fPIC -ffreestanding -fno-builtin -fno-stack-protector \
	-fcf-protection=none -fno-asynchronous-unwind-tables -fvisibility=hidden -nostdlib -mgeneral-regs-only \
	-fno-tree-loop-distribute-patterns \
	-Wl,--hash-style=both -Wl,-z,now -Wl,-Bsymbolic -Wl,--build-id=none -Wl,-z,nodelete -Wl,-z,noexecstack \
	-s -o "$out" profiler.c start.c handler.c
