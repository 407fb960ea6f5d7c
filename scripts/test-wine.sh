#!/usr/bin/env bash
# Runs the tests of what is of no system, and of the tool's Windows half, as
# Windows programs under Wine. Usage: scripts/test-wine.sh [go test's flags]
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
if [ ! -x /usr/lib/wine/wine64 ] || ! command -v x86_64-w64-mingw32-gcc >/dev/null; then
	echo "SKIPPED-CHECK: no wine64 or no mingw: nothing is tested as a Windows program"
	exit 0
fi
scripts/wine.sh prepare
status=0
# The simulator's scenarios are the same computation everywhere, and there is no
# compiler under Wine: not again.
GOOS=windows GOARCH=amd64 CGO_ENABLED=0 $go test "$@" -timeout 5m -skip '^TestSim|^TestPENames$' -exec "$PWD/scripts/wine.sh exec" \
	./pe ./cfi ./context/memory ./unwind/module ./context ./unwind/... ./stack/seed ./stack/snapshot ./stack/merge ./clr ./process/live ./report/wire ./cmd/record/... ./process/program ./cmd/seedwalk/... || status=$?
GOOS=windows GOARCH=amd64 CGO_ENABLED=1 CC=x86_64-w64-mingw32-gcc $go test "$@" -timeout 5m -exec "$PWD/scripts/wine.sh exec" ./profiler || status=$?
# The tests of Windows runtimes, as a Windows program of their own: the short ones.
GOOS=windows GOARCH=amd64 CGO_ENABLED=0 $go test "$@" -timeout 5m -run '^TestWindows(NothingToSample|Doctor|CommandFile)$' \
	-exec "$PWD/scripts/wine.sh exec" ./profiler/e2e || status=$?
exit $status
