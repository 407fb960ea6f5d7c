#!/usr/bin/env bash
# Builds everything that is given away, into out/dist/OS-ARCH, with checksums in
# out/dist/SHA256SUMS: the tool, the C library both ways with its header, the
# profiler where there is one. What lacks a compiler is left out, and said.
# Usage: scripts/dist.sh
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
dist=out/dist
status=0
rm -rf $dist

# build OS ARCH CC SO A EXE PROFILER: file names of the platform
build() {
	local dir=$dist/$1-$2 cc=$3
	mkdir -p "$dir"
	export GOOS=$1 GOARCH=$2
	CGO_ENABLED=0 $go build -trimpath -o "$dir/$6" ./cmd/seedwalk
	if ! command -v "$cc" >/dev/null; then
		echo "SKIPPED-CHECK: no $cc: the libraries for $1-$2 are not built"
		return
	fi
	export CC=$cc CGO_ENABLED=1
	$go build -trimpath -buildmode=c-shared -o "$dir/$4" ./capi
	$go build -trimpath -buildmode=c-archive -o "$dir/$5" ./capi
	[ -z "$7" ] || $go build -trimpath -buildmode=c-shared -o "$dir/$7" ./profiler
	rm -f "$dir"/*.h
	cp capi/seedwalk.h "$dir/"
}

# try PLATFORM COMMAND...: the tool starts there.
try() {
	local name=$1
	shift
	if ! command -v "$1" >/dev/null; then
		echo "SKIPPED-CHECK: no $1: $name is not tried"
	elif out=$("$@" 2>&1); then
		echo "$name: $out"
	else
		echo "$name: $out" >&2
		status=1
	fi
}

build linux amd64 gcc libseedwalk.so libseedwalk.a seedwalk libseedwalk_profiler.so
build linux arm64 aarch64-linux-gnu-gcc libseedwalk.so libseedwalk.a seedwalk ""
build windows amd64 x86_64-w64-mingw32-gcc seedwalk.dll libseedwalk.a seedwalk.exe seedwalk_profiler.dll

# Links a C program with the static library of a platform and runs it. The worked
# example is x86-64 Linux's; elsewhere the library is opened, told of code, closed.
linked() {
	local dir=$dist/$1 cc=$2 source=$3
	shift 3
	[ -f "$dir/libseedwalk.a" ] || return 0
	"$cc" -O2 -Wall -Wextra -Werror -I"$dir" -o out/dist-example.exe "$source" "$dir/libseedwalk.a" -lpthread
	if "$@" out/dist-example.exe >out/dist-example.txt 2>&1; then
		echo "$dir: $(basename "$source") is linked and runs"
	else
		echo "$dir: $(basename "$source") fails: $(tail -n 1 out/dist-example.txt)" >&2
		status=1
	fi
}

cat >out/dist-open.c <<'C'
#include "seedwalk.h"

int main(void)
{
	seedwalk_handle h = seedwalk_open();
	return seedwalk_add_managed(h, 0x1000, 0x2000) != 0 || seedwalk_commit(h) != 0 || seedwalk_close(h) != 0;
}
C
try linux-amd64 $dist/linux-amd64/seedwalk version
try linux-arm64 qemu-aarch64 $dist/linux-arm64/seedwalk version
[ ! -x /usr/lib/wine/wine64 ] || try windows-amd64 scripts/wine.sh exec $dist/windows-amd64/seedwalk.exe version
linked linux-amd64 gcc capi/testdata/example.c env
! command -v qemu-aarch64 >/dev/null || linked linux-arm64 aarch64-linux-gnu-gcc out/dist-open.c qemu-aarch64 -L /usr/aarch64-linux-gnu
[ ! -x /usr/lib/wine/wine64 ] || linked windows-amd64 x86_64-w64-mingw32-gcc out/dist-open.c scripts/wine.sh exec
rm -f out/dist-example.exe out/dist-example.txt out/dist-open.c
(cd $dist && find . -type f ! -name SHA256SUMS | sort | xargs sha256sum >SHA256SUMS && cat SHA256SUMS)
exit $status
