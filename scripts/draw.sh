#!/bin/sh
# Draws ten code files and three documents at random, for a reader who has not written them.
#   scripts/draw.sh [SEED]      # the same seed and tree give the same files
set -e
cd "$(dirname "$0")/.."
seed=${1:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
echo "seed $seed"
draw() {
	awk -v seed="$seed" 'BEGIN { srand(seed) } { print rand() "\t" $0 }' | sort | cut -f 2 | head -n "$1"
}
git ls-files '*.go' '*.c' '*.h' | grep -v testdata | draw 10
git ls-files '*.md' | grep -v 'docs/notes/\|testdata' | draw 3
