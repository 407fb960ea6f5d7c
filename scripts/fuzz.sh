#!/usr/bin/env bash
# Runs the fuzz targets one after the other, each for TIME, one line for each:
# executions, how many inputs were new, and the result. What is found is kept in
# fuzz/testdata/fuzz, where go test replays it; then the exit status is 1.
# Usage: scripts/fuzz.sh TIME [TARGET...]   TIME as in 20s or 10m; default: all
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:?usage: scripts/fuzz.sh TIME [TARGET...]}
shift
go=${GO:-go}
all=$("$go" test ./fuzz -run '^$' -list '^Fuzz' | grep '^Fuzz')
[ $# -gt 0 ] || read -r -d '' -a all_targets <<<"$all" || true
targets=("${@:-${all_targets[@]}}")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
for target in "${targets[@]}"; do
	grep -qx "$target" <<<"$all" || { echo "fuzz: no target $target; there are:" $all >&2; exit 2; }
	result=ok
	"$go" test ./fuzz -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 20x -parallel 1 >"$log" 2>&1 || result=FAILED
	# At the end of its time go's fuzzer at times reports its own deadline.
	if grep -q '^ *context deadline exceeded$' "$log" && ! grep -qE 'Failing input|panic|--- FAIL: Fuzz.*/' "$log"; then
		result=ok
	fi
	last=$(grep -E '^fuzz: elapsed: .*execs: ' "$log" | tail -n 1 || true)
	execs=$(sed -nE 's/.*execs: ([0-9]+).*/\1/p' <<<"$last")
	new=$(sed -nE 's/.*new interesting: ([0-9]+).*/\1/p' <<<"$last")
	[ "${execs:-0}" != 0 ] || result=FAILED # nothing ran: no result
	printf '%-18s %12s execs %6s new  %s\n' "$target" "${execs:-0}" "${new:-0}" "$result"
	if [ $result = FAILED ]; then
		status=1
		grep -vE '^fuzz: elapsed' "$log" | head -n 30 | sed 's/^/    /'
	fi
done
exit $status
