#!/usr/bin/env bash
# Records the demo RUNS times (20) and counts the incomplete stacks. It fails if there is one.
set -euo pipefail
cd "$(dirname "$0")/.."
runtime=$(scripts/runtime-dir.sh)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
samples=0 gaps=0
for run in $(seq "${RUNS:-20}"); do
	out/bin/seedwalk record --rate 200 --json --quiet --output "$dir/demo.json" -- \
		out/bin/swhost "$runtime" out/samples/Demo.exe "${SECONDS_OF_DEMO:-8}" >"$dir/stdout" 2>"$dir/stderr"
	stats=$(grep -o '"stats":{"samples":[0-9]*,"complete":[0-9]*,"gaps":{[^}]*}' "$dir/stderr" | head -n 1)
	[ -n "$stats" ] || { echo "demo-gaps: run $run has no figures"; cat "$dir/stderr"; exit 1; }
	taken=$(sed 's/.*"samples":\([0-9]*\).*/\1/' <<<"$stats")
	complete=$(sed 's/.*"complete":\([0-9]*\).*/\1/' <<<"$stats")
	echo "run $run: $taken samples, $((taken - complete)) incomplete ${stats##*\"gaps\":}"
	samples=$((samples + taken)) gaps=$((gaps + taken - complete))
done
echo "demo-gaps: ${RUNS:-20} runs, $samples samples, $gaps incomplete"
[ "$gaps" = 0 ] && [ "$samples" -gt 0 ]
