#!/usr/bin/env bash
# Builds the seed files from seed.c and seed.go. They are committed, so that a
# fuzzer starts from the same bytes on any machine. Run this only to change them.
# Needs gcc, also for aarch64 and mingw, binutils, and go.
set -euo pipefail
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
flags=(-O2 -nostdlib -ffreestanding -fno-builtin -fno-stack-protector -Wall -Wextra -Werror -ffile-prefix-map="$PWD"=.)
small=(-Wl,-z,max-page-size=4096 -Wl,-z,noseparate-code -Wl,--hash-style=gnu)
for pair in amd64:gcc arm64:aarch64-linux-gnu-gcc; do
	arch=${pair%%:*} cc=${pair#*:}
	"$cc" "${flags[@]}" "${small[@]}" -shared -fPIC -fasynchronous-unwind-tables -s -Wl,--build-id=sha1 -o "$arch.so" seed.c
	"$cc" "${flags[@]}" "${small[@]}" -static -fno-omit-frame-pointer -fasynchronous-unwind-tables -s -Wl,--build-id=none -o "$arch-fp.elf" seed.c
	for z in none zlib zlib-gnu; do # .debug_frame: plain, SHF_COMPRESSED, .zdebug_frame
		"$cc" "${flags[@]}" "${small[@]}" -static -g1 -fno-asynchronous-unwind-tables -gz=$z -Wl,--build-id=none -o "$arch-$z.elf" seed.c
	done
	# Go's linker: every function of a program, cut to a few dozen.
	CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -trimpath -ldflags=-compressdwarf=false -o "$tmp/go" seed.go
	objcopy -I binary -O binary "$tmp/go" "$tmp/raw"
	read -r offset size < <(readelf -SW "$tmp/go" | sed -nE 's/.* \.debug_frame +PROGBITS +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+).*/\1 \2/p')
	dd if="$tmp/raw" of="$arch-go.debug_frame" bs=1 skip=$((16#$offset)) count=$((16#$size < 2048 ? 16#$size : 2048)) status=none
done
dll=(x86_64-w64-mingw32-gcc "${flags[@]}" -mno-stack-arg-probe -shared -Wl,-e,DllMainCRTStartup -Wl,--image-base,0x180000000 -Wl,--no-insert-timestamp)
"${dll[@]}" -s -Wl,--build-id -o amd64.dll seed.c
"${dll[@]}" -g1 -o amd64-dwarf.dll seed.c                                 # .pdata and .debug_frame
"${dll[@]}" -g1 -fno-asynchronous-unwind-tables -o amd64-nopdata.dll seed.c # .debug_frame alone
