#!/usr/bin/env bash
# Compiles every C file of ours with all warnings as errors. cgo's own glue
# needs one exception when it is built; our code does not.
set -euo pipefail
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
strict=(gcc -std=gnu11 -O2 -Wall -Wextra -Werror -fPIC)
for dir in profiler profiler/host capi; do
	mkdir -p "$tmp/$dir"
	(cd $dir && go tool cgo -objdir "$tmp/$dir" -- -I. $(go list -f '{{join .CgoFiles " "}}' .)) # writes _cgo_export.h
	for f in $dir/*.c; do
		case $f in *_windows.c) continue ;; esac
		[ ! -f "$f" ] || "${strict[@]}" -I"$tmp/$dir" -I$dir -c "$f" -o "$tmp/o.o"
	done
done
mingw=x86_64-w64-mingw32-gcc
if command -v $mingw >/dev/null; then
	windows=($mingw -std=gnu11 -O2 -Wall -Wextra -Werror)
	mkdir -p "$tmp/windows"
	(cd profiler && CC=$mingw GOOS=windows GOARCH=amd64 CGO_ENABLED=1 go tool cgo -objdir "$tmp/windows" -- -I. \
		$(GOOS=windows GOARCH=amd64 CGO_ENABLED=1 go list -f '{{join .CgoFiles " "}}' .))
	for f in profiler/*.c profiler/host/*.c; do
		case $f in *_linux.c | profiler/guard.c) continue ;; esac
		"${windows[@]}" -I"$tmp/windows" -Iprofiler -c "$f" -o "$tmp/o.o"
	done
	for dir in profiler/e2e/testprof/*/; do
		for f in "$dir"*.c; do
			"${windows[@]}" -I"$dir" -Iprofiler/host -c "$f" -o "$tmp/o.o"
		done
	done
	for f in profiler/testdata/{*_windows,wine/*}.c; do
		"${windows[@]}" -c "$f" -o "$tmp/o.o"
	done
	for f in capi/testdata/{example,sampler_errors,worlds,own_named}.c capi/examples/*.c capi/client/{src/*,testdata/*_windows}.c sample/probe/src/copy{,_windows}.c; do
		case $f in *_linux.c) continue ;; esac
		"${windows[@]}" -DWIN32_LEAN_AND_MEAN -fno-strict-aliasing -Icapi -Icapi/client -c "$f" -o "$tmp/o.o"
	done
else
	echo "SKIPPED-CHECK: no $mingw: C for Windows is not compiled"
fi
for f in profiler/testdata/*.c bench/*/*.c bench/oracle/testdata/*.c sample/probe/src/*.c sim/native/src/*.c; do
	case $f in *_windows.c) continue ;; esac
	"${strict[@]}" -c "$f" -o "$tmp/o.o"
done
for f in capi/testdata/*.c capi/client/{src,testdata}/*.c capi/examples/*.c; do
	case $f in *_windows.c) continue ;; esac
	"${strict[@]}" -fno-strict-aliasing -Icapi -Icapi/client -c "$f" -o "$tmp/o.o"
done
for cxx in g++ clang++ x86_64-w64-mingw32-g++; do
	if ! command -v $cxx >/dev/null; then
		echo "SKIPPED-CHECK: no $cxx: the sample profilers are not compiled with it"
		continue
	fi
	for f in capi/examples/*.cpp capi/testdata/*.cpp; do
		case $cxx:$f in x86_64-*:capi/examples/*.cpp) ;; x86_64-*) continue ;; esac # the others are for Linux
		$cxx -std=c++17 -O2 -Wall -Wextra -Werror -fPIC -Icapi -Icapi/client -c "$f" -o "$tmp/o.o"
	done
done
