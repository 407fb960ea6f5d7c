#!/usr/bin/env bash
# Builds the C library for GOOS, GOARCH and CC:
#     capi/build.sh shared|archive OUT [VERSION]
# On Linux the shared library shows seedwalk_* and nothing else, and its SONAME is
# libseedwalk.so.1, the number being SEEDWALK_ABI: if OUT has another name, a link of
# that name is made beside it; it needs glibc 2.17, whatever it is built on. On Windows
# an import library, seedwalk.lib, is.
set -euo pipefail
out=$(realpath -m "$2")
soname=libseedwalk.so.1
cd "$(dirname "$0")"
goos=${GOOS:-$(go env GOOS)}
goarch=${GOARCH:-$(go env GOARCH)}
flags="-X main.version=${3:-development}"

# What glibc has moved from libpthread.so.0 into libc.so.6, in 2.32 and 2.34, has got new
# versions there, and what is linked today asks for those. Linked with a libpthread.so.0
# that has these functions as it had them before, the library asks for the versions that
# every release since 2.17 gives it. TestGlibc fails on a function that is missing here.
pthreads() {
	local since=GLIBC_2.2.5 name
	[ "$goarch" != arm64 ] || since=GLIBC_2.17
	mkdir -p "$1"
	for name in attr_getstack attr_getstacksize create detach getattr_np key_create setspecific sigmask; do
		echo "void pthread_$name(void) {}"
	done >"$1/pthread.c"
	echo "$since { global: pthread_*; };" >"$1/pthread.map"
	"${CC:-gcc}" -shared -nostdlib -Wl,-soname,libpthread.so.0,--version-script,"$1/pthread.map" -o "$1/libpthread.so.0" "$1/pthread.c"
}

if [ "$1" = shared ]; then
	case $goos in
	linux)
		trap 'rm -rf "$out.link"' EXIT
		pthreads "$out.link"
		flags+=" -extldflags=-Wl,-soname,$soname,--version-script,$PWD/exports.map,$out.link/libpthread.so.0"
		;;
	windows) flags+=" -extldflags=-Wl,--out-implib,$(dirname "$out")/seedwalk.lib" ;;
	esac
fi
# A tag, since other C flags would compile all of Go's packages with C in them once more.
CGO_ENABLED=1 LDFLAGS=$flags ../scripts/library.sh "c-$1" -tags "$1" -o "$out" .
rm -f "${out%.*}.h" # Go writes one of its own

# Every name that the archive defines begins with seedwalk_, so that none of ours or of Go's
# meets one of the program that links it. (One object with local names would be shorter, but
# ld 2.40 for ARM64 crashes on it.)
if [ "$1" = archive ]; then
	names=$out.names
	trap 'rm -f "$names"' EXIT
	binutil() { "$("${CC:-gcc}" -print-prog-name="$1")" "${@:2}"; }
	binutil nm -g --defined-only "$out" | awk 'NF == 3 && $3 !~ /^seedwalk_/ { print $3, "seedwalk_private_" $3 }' | sort -u >"$names"
	binutil objcopy --redefine-syms="$names" "$out"
fi
if [ "$1" = shared ] && [ "$goos" = linux ] && [ "$(basename "$out")" != $soname ]; then
	ln -sf "$(basename "$out")" "$(dirname "$out")/$soname"
fi
