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
if stale out/samples/nodehost.node $src/nodehost.c $src/host.c; then
	gcc -O2 -shared -fPIC $warn -o out/samples/nodehost.node $src/nodehost.c -ldl
fi
for lib in demo truth exact survive waits second; do
	if stale out/samples/lib$lib.so $(ls $src/$lib.[ch]) $src/profiler.h; then
		# Some distributions build all libraries with frame pointers.
		[ $lib = survive ] && frame=-fno-omit-frame-pointer || frame=-fomit-frame-pointer
		gcc -O2 -g -pthread $frame -shared -fPIC $warn -o out/samples/lib$lib.so $src/$lib.c
	fi
done
if stale out/samples/libgolib.so $src/golib/main.go; then
	${GO:-go} build -trimpath -buildmode=c-shared -o out/samples/libgolib.so ./$src/golib
	rm -f out/samples/libgolib.h
fi
for app in Demo Soak Waits Exact Survive Cost Events Ending Storm Many Ended Hang Fixed Trouble; do
	if stale out/samples/$app.exe $src/$app.cs; then
		mcs -optimize+ -unsafe -nologo -warn:1 -out:out/samples/$app.exe $src/$app.cs
	fi
done
if stale out/samples/Truth.exe $src/Truth.cs $src/TruthMore.cs; then
	mcs -optimize+ -unsafe -nologo -warn:1 -out:out/samples/Truth.exe $src/Truth.cs $src/TruthMore.cs
fi

# Against the core library of the runtime itself: the compiler's own has no ValueTask.
core=.cache/dotnet-9.0.5/package/dist/System.Private.CoreLib.dll
if [ -f $core ] && stale out/samples/Tasks.exe $src/Tasks.cs $core; then
	mcs -optimize+ -nologo -nostdlib -noconfig -warn:1 -nowarn:4014 -r:$core -out:out/samples/Tasks.exe $src/Tasks.cs
fi

# The compiler of today's programs, which itself runs on .NET 9: pooled ValueTasks, async
# iterators, and channels; optimized and not.
roslyn=.cache/roslyn/package
dist=.cache/dotnet-9.0.5/package/dist
if [ -f $core ] && [ -f $roslyn/Microsoft.CodeAnalysis.CSharp.dll ]; then
	mkdir -p out/samples/csc out/samples/debug
	if stale out/samples/csc/Csc.exe $src/Csc.cs $roslyn/Microsoft.CodeAnalysis.dll; then
		cp $roslyn/Microsoft.CodeAnalysis.dll $roslyn/Microsoft.CodeAnalysis.CSharp.dll out/samples/csc/
		mcs -optimize+ -nologo -warn:1 -out:out/samples/csc/Csc.exe $src/Csc.cs
	fi
	csc="env DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 out/bin/swhost $dist out/samples/csc/Csc.exe"
	for app in Awaits Healthy Stuck Requests Reused Deep; do
		if stale out/samples/$app.exe $src/$app.cs out/samples/csc/Csc.exe; then
			$csc out/samples/$app.exe $src/$app.cs $dist/System*.dll
		fi
	done
	for app in Places Inlined; do
		if stale out/samples/$app.exe $src/$app.cs out/samples/csc/Csc.exe; then
			$csc out/samples/$app.exe $src/$app.cs -pdb $dist/System*.dll
		fi
	done
	if stale out/samples/Web.exe $src/Web.cs out/samples/csc/Csc.exe; then
		$csc out/samples/Web.exe $src/Web.cs $dist/System*.dll $dist/Microsoft.AspNetCore*.dll $dist/Microsoft.Extensions.*.dll
	fi
	if stale out/samples/debug/Awaits.exe $src/Awaits.cs out/samples/csc/Csc.exe; then
		$csc out/samples/debug/Awaits.exe $src/Awaits.cs -debug $dist/System*.dll
	fi
fi

# The F# compiler, which Fable brings.
fable=.cache/fsharp/package/bin/fable-cli
if [ -f $fable/FSharp.Core.dll ] && stale out/samples/fsc/Fsc.exe $src/Fsc.cs $fable/FSharp.Core.dll; then
	mkdir -p out/samples/fsc
	cp $fable/FSharp.*.dll out/samples/fsc/
	mcs -optimize+ -nologo -warn:1 -out:out/samples/fsc/Fsc.exe $src/Fsc.cs
fi

# The same for .NET 10, which exists as a single-file program: compiled against its
# core library, and put in the place of that program's own assembly.
single=.cache/dotnet-10.0.9/package/dist/azmcp
for app in Waits Events Exact Storm Survive Hang Tasks Ended; do
	if [ -f $single ] && stale out/samples/${app}10 $src/$app.cs $single; then
		mkdir -p out/samples/net10/$app
		${GO:-go} run ./testkit/tools/bundle extract $single System.Private.CoreLib.dll out/samples/net10/System.Private.CoreLib.dll
		mcs -optimize+ -unsafe -nologo -nostdlib -noconfig -warn:1 -nowarn:4014 -define:NET10 -r:out/samples/net10/System.Private.CoreLib.dll \
			-out:out/samples/net10/$app/azmcp.dll $src/$app.cs
		${GO:-go} run ./testkit/tools/bundle replace $single azmcp.dll out/samples/net10/$app/azmcp.dll out/samples/${app}10
	fi
done
if [ -f $single ] && stale out/samples/Requests10 $src/Requests.cs $single; then
	into=out/samples/net10/Requests
	mkdir -p $into
	for lib in System.Private.CoreLib System.Collections System.Diagnostics.DiagnosticSource System.Runtime; do
		${GO:-go} run ./testkit/tools/bundle extract $single $lib.dll $into/$lib.dll
	done
	mcs -optimize+ -nologo -nostdlib -noconfig -warn:1 -nowarn:4014 -define:NET10 -out:$into/azmcp.dll $src/Requests.cs \
		-r:$into/System.Private.CoreLib.dll -r:$into/System.Collections.dll -r:$into/System.Diagnostics.DiagnosticSource.dll -r:$into/System.Runtime.dll
	${GO:-go} run ./testkit/tools/bundle replace $single azmcp.dll $into/azmcp.dll out/samples/Requests10
fi
if [ -f $single ] && stale out/samples/Truth10 $src/Truth.cs $src/TruthMore.cs $single; then
	mkdir -p out/samples/net10
	${GO:-go} run ./testkit/tools/bundle extract $single System.Private.CoreLib.dll out/samples/net10/System.Private.CoreLib.dll
	mcs -optimize+ -unsafe -nologo -nostdlib -noconfig -warn:1 -r:out/samples/net10/System.Private.CoreLib.dll \
		-out:out/samples/net10/azmcp.dll $src/Truth.cs $src/TruthMore.cs
	${GO:-go} run ./testkit/tools/bundle replace $single azmcp.dll out/samples/net10/azmcp.dll out/samples/Truth10
fi

# The same for musl: a single-file program of .NET 9.0.9, with the core library of
# 9.0.5, since its own is cut down to what that program needs.
musl=.cache/dotnet-9.0.9-musl/package/bin/vsce-sign
for app in Truth Exact; do
	if [ -f $musl ] && [ -f $core ] && command -v musl-gcc >/dev/null && stale out/samples/${app}Musl $src/$app*.cs $src/musl.c $musl; then
		mkdir -p out/samples/musl/$app
		mcs -optimize+ -unsafe -nologo -nostdlib -noconfig -warn:1 -r:$core -out:out/samples/musl/$app/vsce-sign.dll $(ls $src/$app.cs $src/${app}More.cs 2>/dev/null)
		for lib in libstdc++.so.6 libgcc_s.so.1; do
			cp "$(gcc -print-file-name=$lib)" out/samples/musl/
		done
		musl-gcc -shared -fPIC -O2 $warn -o out/samples/musl/ld-linux-x86-64.so.2 $src/musl.c
		${GO:-go} run ./testkit/tools/bundle replace $musl System.Private.CoreLib.dll $core out/samples/musl/program
		${GO:-go} run ./testkit/tools/bundle replace out/samples/musl/program vsce-sign.dll out/samples/musl/$app/vsce-sign.dll out/samples/${app}Musl
		rm out/samples/musl/program
	fi
done

# .NET 8, which says nothing of its structures: a single-file program of 8.0.6, against its
# own core library.
eight=.cache/dotnet-8.0.6/package/bin/vsce-sign
if [ -f $eight ] && stale out/samples/Truth8 $src/TruthOld.cs $eight; then
	mkdir -p out/samples/net8
	${GO:-go} run ./testkit/tools/bundle extract $eight System.Private.CoreLib.dll out/samples/net8/System.Private.CoreLib.dll
	mcs -optimize+ -unsafe -nologo -nostdlib -noconfig -warn:1 -r:out/samples/net8/System.Private.CoreLib.dll \
		-out:out/samples/net8/vsce-sign.dll $src/TruthOld.cs
	${GO:-go} run ./testkit/tools/bundle replace $eight vsce-sign.dll out/samples/net8/vsce-sign.dll out/samples/Truth8
fi
if [ -f $eight ] && [ -f $core ] && stale out/samples/Tasks8 $src/TasksOld.cs $eight; then
	mkdir -p out/samples/net8/Tasks
	mcs -optimize+ -nologo -nostdlib -noconfig -warn:1 -nowarn:4014 -r:$core -out:out/samples/net8/Tasks/vsce-sign.dll $src/TasksOld.cs
	${GO:-go} run ./testkit/tools/bundle replace $eight vsce-sign.dll out/samples/net8/Tasks/vsce-sign.dll out/samples/Tasks8
fi

# The same for ARM64, which runs under qemu: a single-file program of .NET 10.0.9, and
# the native half of the truth program; beside it both again, with return addresses signed
# in what is native.
arm=.cache/dotnet-10.0.9-arm64/package/dist/azmcp
into=out/samples/arm64
if [ -f $arm ] && command -v aarch64-linux-gnu-gcc >/dev/null; then
	mkdir -p $into
	if stale $into/libtruth.so $src/truth.[ch]; then
		aarch64-linux-gnu-gcc -O2 -g -pthread -fomit-frame-pointer -shared -fPIC $warn -o $into/libtruth.so $src/truth.c
	fi
	if stale $into/Truth $src/Truth.cs $src/TruthMore.cs $arm; then
		${GO:-go} run ./testkit/tools/bundle extract $arm System.Private.CoreLib.dll $into/System.Private.CoreLib.dll
		mcs -optimize+ -unsafe -nologo -nostdlib -noconfig -warn:1 -r:$into/System.Private.CoreLib.dll -out:$into/azmcp.dll $src/Truth.cs $src/TruthMore.cs
		${GO:-go} run ./testkit/tools/bundle replace $arm azmcp.dll $into/azmcp.dll $into/Truth
	fi
	mkdir -p $into/signed
	if stale $into/signed/libtruth.so $src/truth.[ch]; then
		aarch64-linux-gnu-gcc -O2 -g -pthread -mbranch-protection=standard -fomit-frame-pointer -shared -fPIC $warn -o $into/signed/libtruth.so $src/truth.c
	fi
	[ $into/signed/Truth -ef $into/Truth ] || ln -f $into/Truth $into/signed/Truth
fi
