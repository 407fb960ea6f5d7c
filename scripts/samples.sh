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
for lib in demo truth bias survive waits; do
	if stale out/samples/lib$lib.so $(ls $src/$lib.[ch]); then
		gcc -O2 -g -pthread -fomit-frame-pointer -shared -fPIC $warn -o out/samples/lib$lib.so $src/$lib.c
	fi
done
if stale out/samples/libgolib.so $src/golib/main.go; then
	${GO:-go} build -trimpath -buildmode=c-shared -o out/samples/libgolib.so ./$src/golib
	rm -f out/samples/libgolib.h
fi
for app in Demo Soak Bench Waits Bias Survive Events; do
	if stale out/samples/$app.exe $src/$app.cs; then
		mcs -optimize+ -unsafe -nologo -warn:1 -out:out/samples/$app.exe $src/$app.cs
	fi
done
if stale out/samples/Truth.exe $src/Truth*.cs; then
	mcs -optimize+ -unsafe -nologo -warn:1 -out:out/samples/Truth.exe $src/Truth*.cs
fi

# The same for .NET 10, which exists as a single-file program: compiled against its
# core library, and put in the place of that program's own assembly.
single=.cache/dotnet-10.0.9/package/dist/azmcp
for app in Waits Events; do
	if [ -f $single ] && stale out/samples/${app}10 $src/$app.cs $single; then
		mkdir -p out/samples/net10/$app
		${GO:-go} run ./internal/tools/bundle extract $single System.Private.CoreLib.dll out/samples/net10/System.Private.CoreLib.dll
		mcs -optimize+ -unsafe -nologo -nostdlib -noconfig -warn:1 -r:out/samples/net10/System.Private.CoreLib.dll \
			-out:out/samples/net10/$app/azmcp.dll $src/$app.cs
		${GO:-go} run ./internal/tools/bundle replace $single azmcp.dll out/samples/net10/$app/azmcp.dll out/samples/${app}10
	fi
done
if [ -f $single ] && stale out/samples/Truth10 $src/Truth*.cs $single; then
	mkdir -p out/samples/net10
	${GO:-go} run ./internal/tools/bundle extract $single System.Private.CoreLib.dll out/samples/net10/System.Private.CoreLib.dll
	mcs -optimize+ -unsafe -nologo -nostdlib -noconfig -warn:1 -r:out/samples/net10/System.Private.CoreLib.dll \
		-out:out/samples/net10/azmcp.dll $src/Truth*.cs
	${GO:-go} run ./internal/tools/bundle replace $single azmcp.dll out/samples/net10/azmcp.dll out/samples/Truth10
fi
