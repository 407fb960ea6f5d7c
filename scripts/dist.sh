#!/usr/bin/env bash
# Builds everything that is given away, into out/dist/OS-ARCH, with checksums in
# out/dist/SHA256SUMS: the tool, the C library both ways with its header, the
# profiler where there is one; in out/dist/share what a vendor reads and copies.
# What lacks a compiler is left out, and said.
# Usage: scripts/dist.sh
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
dist=out/dist
status=0
rm -rf $dist
mkdir -p out/bin
scripts/probes.sh out/bin # the tools carry them

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
	local version
	version=$(git describe --tags --always --dirty 2>/dev/null || echo development)
	capi/build.sh shared "$dir/$4" "$version"
	capi/build.sh archive "$dir/$5" "$version"
	[ -z "$7" ] || scripts/library.sh c-shared -o "$dir/$7" ./profiler
	rm -f "$dir"/*.h
	cp capi/seedwalk.h "$dir/"
	if [ "$1-$2" != windows-arm64 ]; then
		local client=libseedwalk_client.so
		[ "$1" = linux ] || client=seedwalk_client.dll
		capi/client/build.sh shared "$dir/$client" "$version"
		capi/client/build.sh archive "$dir/libseedwalk_client.a" "$version"
		cp capi/client/seedwalk_client.h "$dir/"
	fi
	[ "$2" != amd64 ] || checked "$1" "$dir" "$cc"
}

# The checking proxy, for those who debug a profiler: an archive with its header to link
# with, and a library to put before a profiler that is not rebuilt.
checked() {
	local dir=$2 cc=$3 src=capi/checked/src so=libseedwalkcheck.so more=-ldl objects=out/dist-checked f
	[ "$1" = linux ] || { so=seedwalkcheck.dll more=; }
	mkdir -p $objects
	for f in proxy rules threads; do
		"$cc" -std=gnu11 -O2 -Wall -Wextra -Werror -fPIC -I$src -c -o $objects/$f.o $src/$f.c
	done
	rm -f "$dir/libseedwalkcheck.a"
	ar rcs "$dir/libseedwalkcheck.a" $objects/proxy.o $objects/rules.o $objects/threads.o
	"$cc" -std=gnu11 -O2 -Wall -Wextra -Werror -fPIC -shared -I$src -o "$dir/$so" $src/loader.c $src/proxy.c $src/rules.c $src/threads.c $more
	cp $src/checked.h "$dir/"
	rm -rf $objects
}

# What an author of a profiler reads, and the profilers to begin with.
share() {
	mkdir -p $dist/share/docs $dist/share/examples
	cp LICENSE CHANGELOG.md $dist/share/
	cp -r docs/embedding.md docs/contracts.md docs/rules.md docs/rules $dist/share/docs/
	cp capi/examples/* capi/testdata/example.c $dist/share/examples/
}

# sampler COMPILER EXAMPLE: a profiler to begin with is linked with what is given away, and nothing else.
sampler() {
	local program=out/dist-$2.so dir=$dist/linux-amd64
	"$1" -O2 -Wall -Wextra -Werror -shared -fPIC -I$dir -o "$program" "$dist/share/examples/$2" $dir/libseedwalk.a -lpthread
	echo "$dist/share/examples: $2 is linked with $dir/libseedwalk.a"
	rm -f "$program"
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
build windows arm64 aarch64-w64-mingw32-gcc seedwalk.dll libseedwalk.a seedwalk.exe "" # of llvm-mingw: Debian has none

# Links the worked example with the library of a platform, both ways, and runs it,
# if there is what can: linked PLATFORM CC SHARED [RUNNER...]
linked() {
	local dir=$dist/$1 cc=$2 shared=$3 program=out/dist-$1/example.exe kind
	local more=(-lpthread "-Wl,-rpath,$PWD/$dir")
	[ "${1%%-*}" != windows ] || more=()
	[ "$1" != windows-amd64 ] || more=(-lsynchronization)
	shift 3
	[ -f "$dir/libseedwalk.a" ] || return 0
	mkdir -p "$(dirname "$program")"
	for kind in libseedwalk.a "$shared"; do
		"$cc" -std=gnu11 -O2 -Wall -Wextra -Werror -I"$dir" -o "$program" capi/testdata/example.c "$dir/$kind" "${more[@]}"
		[ "$kind" != seedwalk.lib ] || cp "$dir/seedwalk.dll" "$(dirname "$program")/"
		if [ $# -eq 0 ]; then
			echo "$dir: example.c is linked with $kind"
		elif "$@" "$program" >"$program.txt" 2>&1; then
			echo "$dir: example.c is linked with $kind and runs: $(tail -n 1 "$program.txt" | tr -d '\r')"
		else
			echo "$dir: example.c with $kind fails: $(tail -n 1 "$program.txt")" >&2
			status=1
		fi
	done
	rm -rf "$(dirname "$program")"
}

share
sampler g++ smallest_sampler.cpp
sampler gcc own_protocol_linux.c

try linux-amd64 $dist/linux-amd64/seedwalk version
try linux-arm64 qemu-aarch64 $dist/linux-arm64/seedwalk version
[ ! -x /usr/lib/wine/wine64 ] || try windows-amd64 scripts/wine.sh exec $dist/windows-amd64/seedwalk.exe version
linked linux-amd64 gcc libseedwalk.so env
if command -v qemu-aarch64 >/dev/null; then
	linked linux-arm64 aarch64-linux-gnu-gcc libseedwalk.so qemu-aarch64 -L /usr/aarch64-linux-gnu
else
	echo "SKIPPED-CHECK: no qemu-aarch64: the library for linux-arm64 is not run"
fi
if [ -x /usr/lib/wine/wine64 ]; then
	linked windows-amd64 x86_64-w64-mingw32-gcc seedwalk.lib scripts/wine.sh exec
else
	echo "SKIPPED-CHECK: no wine64: the library for windows-amd64 is not run"
fi
linked windows-arm64 aarch64-w64-mingw32-gcc seedwalk.lib
echo "SKIPPED-CHECK: no Windows on ARM64: what is for windows-arm64 is not run"
(cd $dist && find . \( -type f -o -type l \) ! -name SHA256SUMS | sort | xargs sha256sum >SHA256SUMS && cat SHA256SUMS)
exit $status
