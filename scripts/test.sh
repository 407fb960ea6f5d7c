#!/usr/bin/env bash
# Runs every check and test and says what was skipped. go test's own summary is last.
set -uo pipefail
cd "$(dirname "$0")/.."
# A full disk fails tests one by one, hours later and in other words.
for dir in . "${TMPDIR:-/tmp}" "$(go env GOCACHE)"; do
	free=$(df -Pm "$dir" 2>/dev/null | awk 'NR == 2 { print $4 }')
	[ "${free:-9999}" -ge 8000 ] || echo "make test: $(cd "$dir" && pwd) has $free MB free; packages, products, Go's build cache (go clean -cache) and cores take up to 8000" >&2
done
log=$(mktemp) checks=$(mktemp)
trap 'rm -f "$log" "$checks"' EXIT
# What these cannot check is counted with the tests that are skipped.
"${MAKE:-make}" --no-print-directory lint vectors | tee "$checks" || exit
grep -o 'SKIPPED-CHECK: .*' "$checks" >"$log"
status=0 watching=0
# The tests of these watch or ask real programs, on a machine that others may keep busy.
e2e=$(go list ./profiler/e2e)
live=$(go list ./bench/peer ./capi ./stack/capture ./cmd/seedwalk ./process/live ./sample/outside ./sample/probe ./cmd/record ./sim/conform ./eventpipe/waits/session)
go test -json -timeout 30m $(go list ./... | grep -vxF -e "$e2e" -e "$live") >>"$log" || status=$?
go test -json -timeout 30m $live >>"$log" || watching=$?
# Alone: these tests measure a running program.
go test -json -timeout 40m "$e2e" >>"$log" || watching=$?
# A few of them that failed are run once more, alone. Such a test is named in the summary
# even if it passes then; whatever fails twice has failed.
if [ $watching != 0 ]; then
	again=$(grep -F "$(printf '"Package":"%s"\n' $live "$e2e")" "$log" | go run ./testkit/tools/summary -again)
	[ -z "$again" ] || watching=0
	while read -r package tests; do
		[ -n "$package" ] || continue
		echo "once more: $package $tests"
		echo "{\"Action\":\"again\",\"Package\":\"$package\"}" >>"$log"
		go test -json -timeout 15m -run "$tests" "$package" >>"$log" </dev/null || watching=$?
		echo '{"Action":"again"}' >>"$log"
	done <<<"$again"
fi
[ $watching = 0 ] || status=$watching
# Where goroutines meet, once more with the race detector.
go test -json -race -timeout 20m -skip '^TestWine' ./cmd/record ./report/wire ./cmd/seedwalk >>"$log" || status=$?
# Another reader of traces, in a module of its own.
(cd eventpipe/nettrace/oracle && go test -json ./...) >>"$log" || status=$?
# What is of no system, once more as Windows programs.
scripts/test-wine.sh -json >>"$log" || status=$?
go run ./testkit/tools/summary <"$log"
exit $status
