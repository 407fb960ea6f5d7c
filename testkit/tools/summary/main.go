// Command summary reads the output of `go test -json` from stdin and prints a report for
// people. scripts/test.sh runs it. It prints a line per package, the output of failures, and
// the tables of tests that measure something. At the end of the log, it repeats the failures
// in short, because many readers see only the end. Then it prints the ten slowest packages,
// every skipped check with its reason, how long each part of scripts/test.sh took, and the
// counts. A test that failed at first and passed in a second run is listed as UNSTABLE, with
// the output of its first run.
//
// summary -again prints the tests that are worth a second run (see again).
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// event is one line of go test -json (go doc test2json).
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds, of an end
}

// skipMark begins the reason for which a check is skipped.
const skipMark = "SKIPPED-CHECK:"

type key struct{ pkg, test string }

type run struct {
	out                     io.Writer
	output                  map[key][]string
	passed, failed, skipped int
	unstable                []key  // failed at first, and passed in the second run
	second                  string // the package whose failed tests are in their second run now
	reasons                 map[string]int
	order                   []string
	failures                []key              // in the order of the input
	said                    map[key][]string   // output of each failed test
	seconds                 map[string]float64 // of each package, all its runs together
	parts                   []string           // of scripts/test.sh: "quick lint 260 s (CPU 300 s)"
}

// The summary repeats the last shortEntries entries of a failed test: of each, the first
// shortLine bytes of its first line.
const shortEntries, shortLine = 40, 300

func newRun(out io.Writer) *run {
	return &run{out: out, output: map[key][]string{}, reasons: map[string]int{}, said: map[key][]string{},
		seconds: map[string]float64{}}
}

func main() {
	again := flag.Bool("again", false,
		"print a line per package whose failed tests are worth a second run: package and pattern")
	flag.Parse()
	r := newRun(os.Stdout)
	if *again {
		r.out = io.Discard
	}
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
		os.Exit(2)
	}
	if *again {
		r.again(os.Stdout)
		return
	}
	r.close()
}

// tables lists tests that print figures. Their output is shown when they pass, too. Tests of
// real runtimes print figures for each runtime.
func tables(k key) bool {
	runtimes := strings.HasSuffix(k.pkg, "/profiler/e2e") || strings.HasSuffix(k.pkg, "/sim/conform")
	return runtimes || !strings.Contains(k.test, "/") &&
		(strings.Contains(k.pkg, "/bench") || strings.HasSuffix(k.pkg, "/replay"))
}

func (r *run) read(in io.Reader) error {
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var e event
		if err := json.Unmarshal(sc.Bytes(), &e); err != nil {
			r.line(sc.Text())
			continue
		}
		r.event(&e)
	}
	return sc.Err()
}

// line handles a line that is not from go test: a check that a script skips, or a build error.
func (r *run) line(s string) {
	if _, reason, ok := strings.Cut(s, skipMark); ok {
		r.skipped++
		r.because(strings.TrimSpace(reason))
		return
	}
	fmt.Fprintln(r.out, s)
}

func (r *run) event(e *event) {
	k := key{e.Package, e.Test}
	if e.Test == "" {
		r.seconds[e.Package] += e.Elapsed
	}
	switch e.Action {
	case "output", "build-output":
		r.output[k] = append(r.output[k], e.Output)
		return
	case "pass":
		r.mended(k)
		if e.Test != "" {
			r.passed++
			r.show(k, tables(k))
		}
	case "fail":
		if e.Test == "" {
			r.unfinished(e.Package)
		}
		r.failure(k)
		return
	case "skip":
		if e.Test != "" {
			r.skipped++
			r.skip(k)
		}
	case "again": // of scripts/test.sh, not of go test
		r.second = e.Package
	case "took": // of scripts/test.sh, too
		r.parts = append(r.parts, e.Output)
	case "build-fail":
		r.show(k, true)
	}
	if e.Test == "" && (e.Action == "pass" || e.Action == "skip") {
		r.show(k, true)
	}
	delete(r.output, k)
}

// unfinished counts the tests of a failed package that have not ended as failures: go test -json has no
// end of a test that was killed or ran into the timeout.
func (r *run) unfinished(pkg string) {
	for _, k := range slices.SortedFunc(maps.Keys(r.output), byName) {
		if k.pkg == pkg && k.test != "" {
			r.failure(k)
		}
	}
}

func byName(a, b key) int {
	return cmp.Or(strings.Compare(a.pkg, b.pkg), strings.Compare(a.test, b.test))
}

// show prints the output of a test or package, without the lines that go test writes for every
// test.
func (r *run) show(k key, wanted bool) {
	if !wanted {
		return
	}
	for _, line := range r.output[k] {
		if !strings.HasPrefix(line, "=== ") && line != "PASS\n" &&
			!strings.HasPrefix(strings.TrimSpace(line), "--- PASS") {
			fmt.Fprint(r.out, line)
		}
	}
	delete(r.output, k)
}

// entry matches the first line of an entry: a test's log, or a panic.
var entry = regexp.MustCompile(`^ *[\w./-]+\.go:\d+: |^panic: |^fatal error: `)

// short prints the first lines of the entries of a failed test.
func (r *run) short(k key) {
	var entries []string
	for _, line := range r.said[k] {
		if line = strings.TrimRight(line, "\n"); entry.MatchString(line) {
			entries = append(entries, line[:min(len(line), shortLine)])
		}
	}
	for _, line := range entries[max(0, len(entries)-shortEntries):] {
		fmt.Fprintln(r.out, line)
	}
}

func (r *run) skip(k key) {
	reason := "no reason given"
	for _, line := range r.output[k] {
		if _, after, ok := strings.Cut(line, skipMark); ok {
			reason = strings.TrimSpace(after)
		}
	}
	r.because(reason)
}

func (r *run) because(reason string) {
	if r.reasons[reason]++; r.reasons[reason] == 1 {
		r.order = append(r.order, reason)
	}
}

// slowest prints the packages that took the most time, at least a second each.
func (r *run) slowest() {
	names := slices.SortedFunc(maps.Keys(r.seconds), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.seconds[b], r.seconds[a]), strings.Compare(a, b))
	})
	for _, name := range names[:min(len(names), 10)] {
		if s := r.seconds[name]; s >= 1 {
			fmt.Fprintf(r.out, "SLOW %.0f s: %s\n", s, name)
		}
	}
}

func (r *run) close() {
	for _, k := range r.failures {
		r.output[k] = r.said[k]
		r.show(k, true) // what ran in two builds and failed in both: once
	}
	for _, k := range r.failures {
		if k.test != "" {
			fmt.Fprintln(r.out, "FAILED", k.pkg, k.test)
			r.short(k)
		}
	}
	for _, k := range r.unstable {
		fmt.Fprintln(r.out, "UNSTABLE", k.pkg, k.test, "failed, and passed when it was run once more:")
		r.short(k)
	}
	r.slowest()
	for _, reason := range r.order {
		fmt.Fprintf(r.out, "SKIPPED %d: %s\n", r.reasons[reason], reason)
	}
	if len(r.parts) > 0 {
		fmt.Fprintln(r.out, "TOOK", strings.Join(r.parts, ", "))
	}
	if n := len(r.unstable); n > 0 {
		fmt.Fprintf(r.out, "%d unstable: passed at their second run\n", n)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
}
