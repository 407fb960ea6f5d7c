#!/usr/bin/env bash
# Builds the client library for Linux, for the machine that CC compiles for:
#     capi/client/build.sh shared|archive OUT [VERSION]
# Neither needs a library or a version of one: the program has a C library, glibc or musl.
set -euo pipefail
out=$(realpath -m "$2")
cd "$(dirname "$0")"
cc=${CC:-gcc}
probe=../../sample/probe/src
case $($cc -dumpmachine) in
*mingw* | *windows*)
	echo "client: there is no client library for Windows" >&2
	exit 1
	;;
aarch64*) arch="-mbranch-protection=none -mno-outline-atomics" ;;
*) arch="-fcf-protection=none" ;;
esac
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
common="-std=gnu11 -Wall -Wextra -Werror -O2 -fPIC -fno-stack-protector -fno-strict-aliasing -fvisibility=hidden -fasynchronous-unwind-tables
	-fno-ident -U_FORTIFY_SOURCE $arch ${3:+-DSW_TEXT_VERSION=\"$3\"} -I.. -I../../profiler/host"
handler="-ffreestanding -fno-builtin -mgeneral-regs-only -fno-tree-loop-distribute-patterns" # what runs in a signal's handler
for f in $probe/{start,handler,copy,objects,relay,read}.c; do
	# shellcheck disable=SC2086
	$cc $common $handler -c "$f" -o "$tmp/$(basename "$f").o"
done
for f in src/*.c ../errors.c; do
	# shellcheck disable=SC2086
	$cc $common -c "$f" -o "$tmp/$(basename "$f").o"
done
if [ "$1" = shared ]; then
	soname=libseedwalk_client.so.1
	"$cc" -shared -nostdlib -s -Wl,--hash-style=both,-z,now,-Bsymbolic,--build-id=none,-z,nodelete,-z,noexecstack,-z,noseparate-code \
		"-Wl,-soname,$soname,--version-script,$PWD/../exports.map" -o "$out" "$tmp"/*.o
	if missing=$("$("$cc" -print-prog-name=nm)" -D --undefined-only "$out" | grep ' sw_'); then
		echo "client: a source file of the probe is missing: it defines$missing" >&2
		exit 1
	fi
	[ "$(basename "$out")" = $soname ] || ln -sf "$(basename "$out")" "$(dirname "$out")/$soname" # what is linked with it asks for
else # one object that exports only our names
	binutil() { "$("$cc" -print-prog-name="$1")" "${@:2}"; }
	binutil ld -r -o "$tmp/all.o" "$tmp"/*.c.o
	binutil objcopy --wildcard --keep-global-symbol='seedwalk_*' "$tmp/all.o"
	rm -f "$out"
	binutil ar rcs "$out" "$tmp/all.o"
fi
