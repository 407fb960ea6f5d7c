#!/usr/bin/env bash
# go build of a library that runs in another program's process. It switches off Go's
# asynchronous preemption: otherwise Go could interrupt our thread by SIGURG (on
# Windows: suspend it) between the calls into C of a suspended window. Go refuses
# this setting in //go:debug lines and in go.mod, so it is passed to the linker.
# LDFLAGS may have more flags for the linker.
# Usage: scripts/library.sh c-shared|c-archive GO-BUILD-ARGUMENTS...
set -euo pipefail
mode=$1
shift
exec "${GO:-go}" build -trimpath -buildmode="$mode" -ldflags "-X=runtime.godebugDefault=asyncpreemptoff=1 ${LDFLAGS:-}" "$@"
