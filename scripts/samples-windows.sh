#!/usr/bin/env bash
# Builds what the Windows demo and tests run, into out/windows: the tool, the
# profiler DLL, the host, the native libraries of the samples. The samples
# themselves are the same files as on Linux, but the one for .NET 10.
# Usage: scripts/samples-windows.sh
set -euo pipefail
cd "$(dirname "$0")/.."
src=profiler/testdata
out=out/windows
cc=x86_64-w64-mingw32-gcc
go=${GO:-go}
mkdir -p $out
warn="-Wall -Wextra -Werror"
stale() { [ ! -f "$1" ] || [ -n "$(find "${@:2}" -newer "$1")" ]; }

command -v $cc >/dev/null || { echo "samples-windows: no $cc; run scripts/deps.sh windows" >&2; exit 1; }
export GOOS=windows GOARCH=amd64 CC=$cc
# linked OUT PACKAGE [TAG]: links OUT unless its packages are those of the last time. go build links a DLL each
# time. The lines that link are part of the key.
linked() {
	local key
	key=$(cat scripts/samples-windows.sh scripts/library.sh; $go version; echo "${LDFLAGS:-}"
		$go list -trimpath -deps -export -f '{{.BuildID}}' ${3:+-tags $3 -overlay profiler/e2e/testprof/$3/overlay.json} "$2")
	key=$(sha256sum <<<"$key")
	[ "$(cat "$1.key" 2>/dev/null)" != "$key" ] || [ ! -f "$1" ] || return 0
	rm -f "$1.key" # a link that is interrupted may leave a part of the file
	if [ "$CGO_ENABLED" = 0 ]; then
		$go build -trimpath -o "$1" "$2"
	else # with a tag, the library has a test's files among its own
		scripts/library.sh c-shared ${3:+-tags $3 -overlay profiler/e2e/testprof/$3/overlay.json} -o "$1" "$2"
	fi
	echo "$key" >"$1.key"
}
CGO_ENABLED=0 linked $out/seedwalk.exe ./cmd/seedwalk
CGO_ENABLED=1 linked $out/seedwalk_profiler.dll ./profiler
for test in torture oracle; do
	CGO_ENABLED=1 linked $out/seedwalk_profiler_$test.dll ./profiler $test
done
rm -f $out/seedwalk_profiler*.h # not used

if stale $out/swhost.exe $src/host_windows.c $src/wine/*.h; then
	$cc -O2 $warn -o $out/swhost.exe $src/host_windows.c
fi
if stale $out/demo.dll $src/demo.c; then
	$cc -O2 -fomit-frame-pointer -shared $warn -o $out/demo.dll $src/demo.c
fi
if stale $out/mix.dll $src/mix_windows.c; then
	$cc -O2 -fomit-frame-pointer -shared $warn -o $out/mix.dll $src/mix_windows.c
fi
if stale $out/waits.dll $src/waits.c; then
	$cc -O2 -fomit-frame-pointer -shared $warn -o $out/waits.dll $src/waits.c
fi
if stale $out/torture.dll $src/torture_windows.c; then
	$cc -O2 -shared $warn -o $out/torture.dll $src/torture_windows.c
fi
for app in Demo Churn Mix Modes Torture Storm; do
	if stale $out/$app.exe $src/$app.cs; then
		mcs -optimize+ -unsafe -nologo -warn:1 -out:$out/$app.exe $src/$app.cs
	fi
done

# The single-file program of .NET 10 with a sample of ours in the place of its own
# assembly. What it may use is what was left of its System.Private.CoreLib.
if stale $out/shim.dll $src/wine/shim.c $src/wine/*.h; then
	$cc -O2 $warn -shared -o $out/shim.dll $src/wine/shim.c
fi
if stale $out/launch.exe $src/wine/launch.c; then
	$cc -O2 $warn -o $out/launch.exe $src/wine/launch.c
fi
single=.cache/dotnet-10.0.9-win/package/dist/azmcp.exe
if [ ! -f $single ]; then
	echo "samples-windows: no $single, so no sample for .NET 10; run scripts/fetch.sh" >&2
	exit 0
fi
lib=$out/net10/System.Private.CoreLib.dll
bundle() { GOOS= GOARCH= CGO_ENABLED=0 $go run ./testkit/tools/bundle "$@"; }
mkdir -p $out/net10
if stale $lib $single; then
	bundle extract $single System.Private.CoreLib.dll $lib
	touch $lib
fi
for app in SingleFile:SingleFile Waits:Waits Storm:Storm10; do
	from=${app%:*} to=${app#*:}
	if stale $out/$to.exe $src/$from.cs $single; then
		mkdir -p $out/net10/$from
		mcs -optimize+ -unsafe -nologo -nostdlib -noconfig -warn:1 -define:NO_SEMAPHORE -r:$lib -out:$out/net10/$from/azmcp.dll $src/$from.cs
		bundle replace $single azmcp.dll $out/net10/$from/azmcp.dll $out/$to.exe
	fi
done
