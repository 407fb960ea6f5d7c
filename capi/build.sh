#!/usr/bin/env bash
# Builds the C library for GOOS, GOARCH and CC:
#     capi/build.sh shared|archive OUT [VERSION]
# On Linux the shared library shows seedwalk_* and nothing else, and its SONAME is
# libseedwalk.so.1, the number being SEEDWALK_ABI: if OUT has another name, a link of
# that name is made beside it. On Windows an import library, seedwalk.lib, is.
set -euo pipefail
out=$(realpath -m "$2")
soname=libseedwalk.so.1
cd "$(dirname "$0")"
goos=${GOOS:-$(go env GOOS)}
flags="-X main.version=${3:-development}"
if [ "$1" = shared ]; then
	case $goos in
	linux) flags+=" -extldflags=-Wl,-soname,$soname,--version-script,$PWD/exports.map" ;;
	windows) flags+=" -extldflags=-Wl,--out-implib,$(dirname "$out")/seedwalk.lib" ;;
	esac
fi
CGO_ENABLED=1 LDFLAGS=$flags ../scripts/library.sh "c-$1" -o "$out" .
rm -f "${out%.*}.h" # Go writes one of its own
if [ "$1" = shared ] && [ "$goos" = linux ] && [ "$(basename "$out")" != $soname ]; then
	ln -sf "$(basename "$out")" "$(dirname "$out")/$soname"
fi
