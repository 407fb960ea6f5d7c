#!/usr/bin/env bash
# go build of a library that will live in another's process: Go's asynchronous
# preemption is off in it, so no SIGURG goes to (on Windows: nobody suspends) a
# thread of ours between the several calls into C of which a window consists. Go
# refuses this setting in //go:debug lines and go.mod; its linker takes it the way
# it takes those. LDFLAGS may have more for the linker.
# Usage: scripts/library.sh c-shared|c-archive GO-BUILD-ARGUMENTS...
set -euo pipefail
mode=$1
shift
exec "${GO:-go}" build -trimpath -buildmode="$mode" -ldflags "-X=runtime.godebugDefault=asyncpreemptoff=1 ${LDFLAGS:-}" "$@"
