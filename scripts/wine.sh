#!/usr/bin/env bash
# Prepares a Wine prefix in .cache/wine, once, and runs Windows programs in it:
# those of Go too, which need one DLL that Wine 8 lacks.
# Usage: scripts/wine.sh [prepare]
#        scripts/wine.sh exec PROG ARGS...    (for go test -exec)
#        scripts/wine.sh path                 prints the prefix
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
wine64=/usr/lib/wine/wine64
cc=x86_64-w64-mingw32-gcc
fixture=$root/profiler/testdata/wine/bcrypt.c
cache=$root/.cache/wine
export WINEPREFIX=$cache/prefix WINEARCH=win64 DISPLAY=
export WINEDEBUG=${WINEDEBUG:--all}
# Neither .NET nor a browser is needed: without them the prefix is ready sooner.
export WINEDLLOVERRIDES=${WINEDLLOVERRIDES:-mscoree=;mshtml=}

die() { echo "wine: $*" >&2; exit 1; }

[ -x "$wine64" ] || die "$wine64 is missing; run scripts/deps.sh windows"

# What a prefix was made with: another Wine or another fixture makes a new one.
stamp() { "$wine64" --version && cksum <"$fixture"; }

ready() { [ -f "$cache/ok" ] && [ "$cache/ok" -nt "$fixture" ]; }

# Not in place: an interrupted prefix would look like a good one.
prepare() {
	local want log=$cache/log
	command -v $cc >/dev/null || die "$cc is missing; run scripts/deps.sh windows"
	mkdir -p "$cache"
	exec 9>"$cache/lock"
	flock 9
	want=$(stamp)
	if [ -d "$WINEPREFIX" ] && [ "$(cat "$cache/ok" 2>/dev/null)" = "$want" ]; then
		touch "$cache/ok"
		return
	fi
	rm -rf "$WINEPREFIX" "$cache/ok"
	$cc -O2 -Wall -Wextra -Werror -shared -o "$cache/bcryptprimitives.dll" "$fixture" -ladvapi32
	"$wine64" wineboot -i >"$log" 2>&1 9>&- </dev/null || die "wineboot failed: $(tail -n 1 "$log"); see $log"
	[ -d "$WINEPREFIX/drive_c/windows/system32" ] || die "wineboot made no system32; see $log"
	cp "$cache/bcryptprimitives.dll" "$WINEPREFIX/drive_c/windows/system32/"
	echo "$want" >"$cache/ok"
}

case "${1:-prepare}" in
prepare) prepare ;;
path)
	prepare
	echo "$WINEPREFIX"
	;;
exec)
	shift
	[ $# -gt 0 ] || die "exec: no program given"
	ready || (prepare)
	exec "$wine64" "$@"
	;;
*) die "unknown command $1; prepare, exec or path" ;;
esac
