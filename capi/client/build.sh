#!/usr/bin/env bash
# Builds the client library for the machine that CC compiles for:
#     capi/client/build.sh shared|archive OUT [VERSION]
# For Linux, neither needs a library or a version of one: the program has a C library, glibc or musl. A DLL
# for Windows needs msvcrt.dll, and has an import library, libOUT.a.
set -euo pipefail
out=$(realpath -m "$2")
cd "$(dirname "$0")"
cc=${CC:-gcc}
probe=../../sample/probe/src system=linux copying="start handler copy objects relay read"
case $($cc -dumpmachine) in
aarch64-*mingw* | aarch64-*windows*)
	echo "client: there is no client library for Windows on ARM64" >&2
	exit 1
	;;
*mingw* | *windows*) system=windows arch=-DWIN32_LEAN_AND_MEAN ;;
aarch64*) arch="-mbranch-protection=none -mno-outline-atomics -fPIC" ;;
*) arch="-fcf-protection=none -fPIC" ;;
esac
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
common="-std=gnu11 -Wall -Wextra -Werror -O2 -fno-stack-protector -fno-strict-aliasing -fvisibility=hidden -fasynchronous-unwind-tables
	-fno-ident -U_FORTIFY_SOURCE $arch ${3:+-DSW_TEXT_VERSION=\"$3\"} -I.. -I../../profiler/host"
handler="-ffreestanding -fno-builtin -mgeneral-regs-only -fno-tree-loop-distribute-patterns" # what runs in a signal's handler
[ $system = linux ] || copying="copy copy_windows"
for f in $copying; do
	# shellcheck disable=SC2086
	$cc $common $handler -c "$probe/$f.c" -o "$tmp/$f.c.o"
done
for f in src/{client,entry,ids,stream}.c src/*_$system.c ../errors.c; do
	# shellcheck disable=SC2086
	$cc $common -c "$f" -o "$tmp/$(basename "$f").o"
done
binutil() { "$("$cc" -print-prog-name="$1")" "${@:2}"; }
if [ "$1" = shared ] && [ $system = windows ]; then
	{ echo EXPORTS && binutil nm -g --defined-only "$tmp"/*.o | awk '$3 ~ /^seedwalk_/ { print $3 }'; } >"$tmp/exports.def"
	"$cc" -shared -s -static-libgcc "-Wl,--no-insert-timestamp,--out-implib,$(dirname "$out")/lib$(basename "$out").a" -o "$out" "$tmp"/*.o "$tmp/exports.def"
elif [ "$1" = shared ]; then
	soname=libseedwalk_client.so.1
	"$cc" -shared -nostdlib -s -Wl,--hash-style=both,-z,now,-Bsymbolic,--build-id=none,-z,nodelete,-z,noexecstack,-z,noseparate-code \
		"-Wl,-soname,$soname,--version-script,$PWD/../exports.map" -o "$out" "$tmp"/*.o
	if missing=$("$("$cc" -print-prog-name=nm)" -D --undefined-only "$out" | grep ' sw_'); then
		echo "client: a source file of the probe is missing: it defines$missing" >&2
		exit 1
	fi
	[ "$(basename "$out")" = $soname ] || ln -sf "$(basename "$out")" "$(dirname "$out")/$soname" # what is linked with it asks for
elif [ $system = windows ]; then # every name begins with seedwalk_; ld -r would break the unwind data
	binutil nm -g --defined-only "$tmp"/*.o | awk 'NF == 3 && $3 !~ /^seedwalk_/ { print $3, "seedwalk_private_" $3 }' | sort -u >"$tmp/names"
	rm -f "$out"
	binutil ar rcs "$out" "$tmp"/*.o
	binutil objcopy --redefine-syms="$tmp/names" "$out"
else # one object that exports only our names
	binutil ld -r -o "$tmp/all.o" "$tmp"/*.c.o
	binutil objcopy --wildcard --keep-global-symbol='seedwalk_*' "$tmp/all.o"
	rm -f "$out"
	binutil ar rcs "$out" "$tmp/all.o"
fi
