#!/usr/bin/env bash
# Builds framehop, the strongest peer of make bench, into .cache/framehop: as it is, and with a rule cache of 4,093
# entries. The sources are Git commits. Nothing else is fetched: cargo runs offline. A missing tool or source is no
# error: the script says what is missing, and make bench goes on without framehop.
# Usage: scripts/framehop.sh
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/.cache/framehop
sources="mstange/framehop 7575047ac7b75303b76c56b99e3d7bbb9047d143
gimli-rs/gimli 8bc8e622fcb9be20fc9f03c96bc6335d936b869d
bluss/arrayvec 0aede877fe0bfb1ba5e3c2024df8c0958d503a83
rust-lang/cfg-if 3510ca6abea34cbbc702509a4e50ea9709925eda
sfackler/rust-fallible-iterator 485e1f826eefd044b35fb7d4859007e1bca48513"

without() { echo "SKIPPED-CHECK: framehop is not in the table: $*"; exit 0; }

[ -f "$out/framehop-4093/libframehop.rlib" ] && exit 0
for tool in git cargo rustc; do command -v $tool >/dev/null || without "no $tool"; done
patches=()
while read -r repo commit; do
	dir=$out/src/${repo#*/}
	if [ "$(git -C "$dir" rev-parse -q --verify HEAD 2>/dev/null)" != "$commit" ] || [ ! -f "$dir/Cargo.toml" ]; then
		rm -rf "$dir" && git init -q "$dir"
		why=$(git -C "$dir" fetch -q --depth 1 "https://github.com/$repo" "$commit" 2>&1) || without "$repo: $(head -n 1 <<<"$why")"
		git -C "$dir" checkout -q FETCH_HEAD
	fi
	patches+=(--config "patch.crates-io.$(sed -n '/^name/{s/.*"\(.*\)"/\1/p;q}' "$dir/Cargo.toml").path=\"$dir\"")
done <<<"$sources"

mkdir -p "$out/build/src" && : >"$out/build/src/lib.rs"
cat >"$out/build/Cargo.toml" <<-END
	[package]
	name = "peer"
	version = "0.0.0"
	edition = "2021"
	[dependencies]
	framehop = { version = "*", default-features = false }
	[profile.release]
	panic = "abort"
END
build() { # NAME ENTRIES
	sed -i "s/^const CACHE_ENTRY_COUNT: usize = .*;/const CACHE_ENTRY_COUNT: usize = $2;/" "$out/src/framehop/src/rule_cache.rs"
	local why
	why=$(cargo build --release --offline --manifest-path "$out/build/Cargo.toml" --target-dir "$out/target" "${patches[@]:2}" \
		"${patches[@]:0:2}" -p framehop 2>&1) || without "cargo: $(grep -m1 error <<<"$why")"
	rm -rf "${out:?}/$1" && mkdir "$out/$1"
	cp -r "$out/target/release/deps" "$out/$1/deps"
	cp "$out/target/release/deps/"libframehop-*.rlib "$out/$1/libframehop.rlib"
}
build framehop 509
rm -rf "$out"/target/release/deps/*framehop*
build framehop-4093 4093
