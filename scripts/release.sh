#!/usr/bin/env bash
# Builds what a release offers: static tools with manual pages in archives, deb, rpm, and apk packages, an
# OCI image, NuGet packages for dotnet tool install, an SBOM for each tool, and SHA256SUMS. Equal sources, version, and Go give
# equal bytes. The version is that of the tag; SEEDWALK_VERSION replaces it.
# Usage: scripts/release.sh [FOLDER]   (default: out/release)
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
out=${1:-out/release}
export LC_ALL=C TZ=UTC
umask 022

version=${SEEDWALK_VERSION:-$(git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null || echo "v0.0.0-dev.g$(git rev-parse --short=12 HEAD)")}
version=${version#v}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || { echo "release: the version $version is not MAJOR.MINOR.PATCH[-PRE]" >&2; exit 1; }
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
(cd scripts/nfpm && $go build -trimpath -o "$stage/nfpm" github.com/goreleaser/nfpm/v2/cmd/nfpm)
$go build -trimpath -o "$stage/release" ./testkit/tools/release
CGO_ENABLED=0 $go build -trimpath -o "$stage/native" ./cmd/seedwalk
"$stage/release" man -version "$version" -o "$stage/man1" "$stage/native"
gzip -9n "$stage/man1"/*.1

# tool OS ARCH FILE: the tool with its documents in $stage/OS-ARCH, and its SBOM.
tool() {
	local dir=$stage/$1-$2
	mkdir -p "$dir"
	GOOS=$1 GOARCH=$2 CGO_ENABLED=0 $go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$dir/$3" ./cmd/seedwalk
	"$stage/release" sbom -version "$version" "$dir/$3" >"$dir/seedwalk.cdx.json"
	cp LICENSE CHANGELOG.md README.md "$dir/"
	"$stage/native" completion bash >"$dir/seedwalk.bash"
	"$stage/native" completion zsh >"$dir/_seedwalk"
	"$stage/native" completion fish >"$dir/seedwalk.fish"
	if [[ $1 == linux ]]; then cp -r "$stage/man1" docs/deploy/seedwalk-agent.service "$dir/"; fi
	cp "$dir/seedwalk.cdx.json" "$out/seedwalk-$version-$1-$2.cdx.json"
	tar --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --mode=u=rwX,go=rX \
		--transform "s,^$1-$2,seedwalk-$version," -C "$stage" -cf - "$1-$2" | gzip -9n >"$out/seedwalk-$version-$1-$2.tar.gz"
}

# packages ARCH: deb, rpm, and apk of the tool for Linux.
packages() {
	local kind
	sed -e "s,\${STAGE},$stage/linux-$1," -e "s,\${ARCH},$1," -e "s,\${VERSION},$version," \
		-e "s,\${MTIME},$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)," scripts/nfpm/nfpm.yaml >"$stage/nfpm-$1.yaml"
	for kind in deb rpm apk; do
		"$stage/nfpm" package --config "$stage/nfpm-$1.yaml" --packager $kind --target "$out/seedwalk-$version-linux-$1.$kind" >/dev/null
	done
}

tool linux amd64 seedwalk
tool linux arm64 seedwalk
tool windows amd64 seedwalk.exe
packages amd64
packages arm64
"$stage/release" oci -version "$version" -time "$SOURCE_DATE_EPOCH" -o "$out/seedwalk-$version-oci.tar" \
	"amd64=$stage/linux-amd64/seedwalk" "arm64=$stage/linux-arm64/seedwalk"
"$stage/release" nuget -version "$version" -time "$SOURCE_DATE_EPOCH" -o "$out" "linux-x64=$stage/linux-amd64/seedwalk" \
	"linux-musl-x64=$stage/linux-amd64/seedwalk" "linux-arm64=$stage/linux-arm64/seedwalk" "linux-musl-arm64=$stage/linux-arm64/seedwalk" \
	"win-x64=$stage/windows-amd64/seedwalk.exe"
(cd "$out" && sums=$(sha256sum -- *) && echo "$sums" >SHA256SUMS && cat SHA256SUMS)
