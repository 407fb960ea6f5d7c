#!/usr/bin/env bash
# Builds the host and the sample programs into out/.
set -euo pipefail
cd "$(dirname "$0")/.."
src=profiler/testdata
mkdir -p out/bin out/samples
warn="-Wall -Wextra -Werror"
stale() { [ ! -f "$1" ] || [ -n "$(find "${@:2}" -newer "$1")" ]; }

if stale out/bin/swhost $src/host.c; then
	gcc -O2 $warn -o out/bin/swhost $src/host.c -ldl
fi
if stale out/bin/oldclr $src/oldclr.c; then
	gcc -O2 $warn -o out/bin/oldclr $src/oldclr.c -ldl
fi
for lib in demo truth bias survive; do
	if stale out/samples/lib$lib.so $(ls $src/$lib.[ch]); then
		gcc -O2 -g -fomit-frame-pointer -shared -fPIC $warn -o out/samples/lib$lib.so $src/$lib.c
	fi
done
for app in Demo Truth Soak Bench Waits Bias Survive; do
	if stale out/samples/$app.exe $src/$app.cs; then
		mcs -optimize+ -unsafe -nologo -warn:1 -out:out/samples/$app.exe $src/$app.cs
	fi
done
