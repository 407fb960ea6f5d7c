#!/usr/bin/env bash
# Runs checks and tests and says what was skipped: test.sh quick (make test), test.sh rest
# (make check, all that quick leaves out; only quick formats, vets, and lints). go test's own summary is last. With TEST_LOG=FILE
# both add to that file, and the summary counts all of it.
set -uo pipefail
cd "$(dirname "$0")/.."
speed=${1:?quick or rest}
# A full disk fails tests one by one, hours later and in other words.
for dir in . "${TMPDIR:-/tmp}" "$(go env GOCACHE)"; do
	free=$(df -Pm "$dir" 2>/dev/null | awk 'NR == 2 { print $4 }')
	[ "${free:-9999}" -ge 8000 ] || echo "tests: $(cd "$dir" && pwd) has $free MB free; packages, products, Go's build cache (go clean -cache) and cores take up to 8000" >&2
done
part=$(mktemp)
trap 'rm -f "$part" "$part".*' EXIT
log=${TEST_LOG:-$part.log} status=0
# End-to-end tests of make test: each main job on .NET 9 and 10, on Windows, and on ARM64.
first='^(TestProbeTruth|TestProbeNet10|TestSimplePrograms|TestShortProgram|TestDoctor|TestStackLocks|TestWaitsCommand|TestNames|TestARM64Record|TestWindowsPID)$'
e2e=$(go list ./profiler/e2e)
guests='^Test(ARM64|Windows)'
# These compare times, or how complete stacks are: no other test runs beside them.
alone='^Test(AgentStretches|Async(Callers|Activities)|Bias|BesideAnother|Client|Client(Bias|Orders)|Net10SingleFile|Node|OtherNamespaces|ProbeFallsBack|ProbeKilled|ProbeSurvives.*|RecordOutside.*|Sampler|ShortThreads|Soak|StrippedLibrary|Truth|TwoRecordings)$'
# These take a minute or more each; make check runs them.
long=$(go list ./capi ./sim/conform ./testkit/stepper)
# These leave cases out with -short, so out of make test; make check runs them whole: a package and a test a line.
cut=$(git ls-files '*_test.go' ':!profiler/e2e' ':!sample' | xargs awk '
	FNR == 1 { name[1] = "no-test" }
	/^func Test/ { split($2, name, "(") }
	/testing\.Short\(\)/ { dir = FILENAME; sub("/[^/]*$", "", dir); print "./" dir, name[1] }' | sort -u)
# These look at pages in a browser, which -short leaves out.
pages=$(go list ./eventpipe/waits/report ./report/diff ./report/export)
# The tests of these watch or ask real programs, on a machine that others may keep busy.
live=$(go list ./bench/peer ./stack/capture ./cmd/seedwalk/... ./process/live ./sample/... ./cmd/record/... ./eventpipe/waits/session)

# lane NAME FLAGS...: go test with them, into a file of its own. It is a subshell: bash adds the time of
# a background lane that ends to the shell's own children.
lane() (
	name=$1 run=$part.$1
	begin
	shift
	case $1 in -race | -short) echo "$1" ;; esac >"$run.flags" # a second run has them too
	go test -vet=off -json -timeout 40m "$@" >"$run" # make lint has vetted everything
	echo $? >"$run.code"
	took "$name"
)

# now sets now to this shell's seconds, and to the seconds of processor time of its children.
now() {
	local file=$part.times.$BASHPID
	times >"$file"
	now=($SECONDS $(awk -F'[ms ]' 'NR == 2 { printf "%.0f", 60 * $1 + $2 + 60 * $4 + $5 }' "$file"))
}

# begin and took NAME: how long a part takes, for the summary. What Wine runs is not among the children.
begin() { now && start=("${now[@]}"); }
took() {
	now
	echo "{\"Action\":\"took\",\"Output\":\"$speed $1 $((now[0] - start[0])) s (CPU $((now[1] - start[1])) s)\"}" >>"$part.took"
}

# settle NAME...: takes over what lanes left. A few of the tests that failed are run once
# more, alone. The summary names such a test even if it passes then; what fails twice
# has failed. What the race detector found counts at once, and so does a lane that did not
# end by itself.
settle() {
	local run code again package pattern repeated=
	begin
	for run in "${@/#/$part.}"; do
		cat "$run" >>"$log"
		code=$(cat "$run.code")
		[ "$code" != 0 ] || continue
		again=
		[ "$code" != 1 ] || grep -q 'WARNING: DATA RACE' "$run" || again=$(go run ./testkit/tools/summary -again <"$run")
		[ -n "$again" ] || status=${code:-1}
		while read -r package pattern; do
			[ -n "$package" ] || continue
			repeated=yes
			echo "once more: $package $pattern"
			echo "{\"Action\":\"again\",\"Package\":\"$package\"}" >>"$log"
			go test -vet=off $(cat "$run.flags") -json -timeout 15m -run "$pattern" "$package" >>"$log" </dev/null || status=$?
			echo '{"Action":"again"}' >>"$log"
		done <<<"$again"
	done
	[ -z "$repeated" ] || took "second runs"
}

begin
[ "$(ps -o comm= -p $PPID)" != make ] || start[0]=-$(($(ps -o etimes= -p $PPID))) # make has fetched and built
took set-up
case $speed in
quick)
	# Alone, each of these leaves a part of two processors idle.
	{
		begin
		"${MAKE:-make}" --no-print-directory lint vectors | tee "$part"
		echo $? >"$part.lint"
		took lint
	} &
	lane units -short $(go list ./... | grep -vxF -e "$e2e" -e "$long" -e "$live" -e "$pages")
	wait
	# What these cannot check is counted with the tests that are skipped.
	grep -o 'SKIPPED-CHECK: .*' "$part" >>"$log"
	settle units
	if [ "$(cat "$part.lint")" = 0 ]; then
		lane live -p 1 $live & # a package at a time: some miss waits on a busy machine
		lane first -run "$first" "$e2e"
		lane pages $pages
		wait
		settle live first pages
	else
		echo "lint has failed, see above: no tests of running programs" >&2
		status=1
	fi
	;;
rest)
	# Three groups at a time. Most tests of programs wait. What they leave of the processors is for
	# compilers, emulators, and simulators.
	{
		renice -n 5 -p "$BASHPID" >/dev/null
		lane long $long
		lane cut -run "^($(cut -d' ' -f2 <<<"$cut" | paste -sd '|'))\$" $(cut -d' ' -f1 <<<"$cut" | sort -u)
	} &
	{
		lane guests -run "$guests" -skip "$first" "$e2e"
		# Where goroutines meet, once more with the race detector.
		lane meet -race ./cmd/record/... ./report/wire
		lane kept -race -run Kept ./sample/probe ./fuzz
		lane commands -race -run 'Agent|Top|Record|Terminal|Interrupt' -skip '^TestWine' ./cmd/seedwalk
	} &
	lane hosts -parallel 4 -skip "$first|$guests|$alone" "$e2e"
	(
		begin
		failed=0
		# Another reader of traces, in a module of its own.
		(cd eventpipe/nettrace/oracle && go test -json ./...) >>"$log" || failed=$?
		# What is of no system, once more as Windows programs.
		scripts/test-wine.sh -vet=off -json >>"$log" || failed=$?
		took wine
		exit $failed
	) || status=$?
	wait
	lane alone -run "$alone" -skip "$first" "$e2e"
	settle long cut guests meet kept commands hosts alone
	;;
*) echo "test.sh: quick or rest, not $speed" >&2 && exit 2 ;;
esac
cat "$part.took" >>"$log"
go run ./testkit/tools/summary <"$log" || status=1
exit $status
