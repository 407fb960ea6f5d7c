#!/usr/bin/env bash
# Installs the Debian packages that are missing: the C# compiler for the sample
# programs, libunwind and libdw as peers and oracles of the tests, Wine and mingw
# for what is of Windows, qemu and a compiler for what is of ARM64. windows is demo
# with Wine and mingw, test is everything; stepped has compilers for make stepped too.
# probe is only the C compilers for x86-64 and ARM64.
# Usage: scripts/deps.sh [demo|windows|test|stepped|probe]
set -euo pipefail

declare -A command_of=([mono-mcs]=mcs [gcc]=gcc [openssl]=openssl [npm]=npm
	[gcc-mingw-w64-x86-64]=x86_64-w64-mingw32-gcc [g++-mingw-w64-x86-64-win32]=x86_64-w64-mingw32-g++
	[g++-aarch64-linux-gnu]=aarch64-linux-gnu-g++ [gcc-aarch64-linux-gnu]=aarch64-linux-gnu-gcc
	[gcc-x86-64-linux-gnu]=x86_64-linux-gnu-gcc [qemu-user]=qemu-aarch64 [musl-tools]=musl-gcc [gdb]=gdb [rpm]=rpm)
declare -A header_of=([libunwind-dev]=libunwind.h [libdw-dev]=elfutils/libdw.h)
wine64=/usr/lib/wine/wine64 # Debian puts it in no PATH

need=(gcc mono-mcs openssl npm)
case "${1:-test}" in
demo) ;;
probe)
	need=(gcc gcc-aarch64-linux-gnu)
	[ "$(uname -m)" != aarch64 ] || need=(gcc gcc-x86-64-linux-gnu)
	;;
windows) need+=(wine64 gcc-mingw-w64-x86-64) ;;
test | stepped) need+=(libunwind-dev libdw-dev wine64 gcc-mingw-w64-x86-64 g++-mingw-w64-x86-64-win32 g++-aarch64-linux-gnu qemu-user musl-tools gdb rpm) ;;
*) echo "deps: unknown set of packages $1; demo, windows, test, stepped or probe" >&2; exit 2 ;;
esac

# What a check or two would like and nothing needs: its absence is no error.
like=()
[ "${1:-test}" != test ] || command -v chromium >/dev/null || like+=(chromium)
[ "${1:-test}" != stepped ] || { command -v clang-16 && command -v clang-19 && command -v lld-link-19; } >/dev/null || like+=(clang-16 clang-19 lld-19)
[ "${1:-test}" != test ] || command -v nuget >/dev/null || like+=(nuget)
[ "${1:-test}" != test ] || [ -x /usr/sbin/debootstrap ] || like+=(debootstrap)
[ "${1:-test}" != test ] || command -v clang++ >/dev/null || like+=(clang)
[ "${1:-test}" != test ] || command -v llvm-pdbutil >/dev/null || like+=(llvm)
[ "${1:-test}" != test ] || command -v lld-link >/dev/null || command -v lld-link-19 >/dev/null || like+=(lld)

missing=()
for p in "${need[@]}"; do
	if [ "$p" = wine64 ]; then
		[ -x "$wine64" ] || missing+=("$p")
	elif [ -n "${command_of[$p]:-}" ]; then
		command -v "${command_of[$p]}" >/dev/null || missing+=("$p")
	else
		compgen -G "/usr/include/${header_of[$p]}" >/dev/null || compgen -G "/usr/include/*/${header_of[$p]}" >/dev/null || missing+=("$p")
	fi
done
[ ${#missing[@]} -eq 0 ] && [ ${#like[@]} -eq 0 ] && exit 0

sudo=
if [ "$(id -u)" != 0 ]; then
	sudo=$(command -v sudo) || [ ${#missing[@]} -eq 0 ] || { echo "deps: missing ${missing[*]}; as root: apt-get install ${missing[*]}" >&2; exit 1; }
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
	[ $# -gt 0 ] || return 0
	echo "deps: installing $*"
	{ $sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "$@"; } >"$log" 2>&1 && return 0
	echo "deps: apt-get could not install $*: $(grep -m1 '^E:' "$log" || tail -n 1 "$log")" >&2
	return 1
}
install "${missing[@]}"
install "${like[@]}" || echo "deps: the checks that use ${like[*]} are skipped"
