// Command summary reads `go test -json` and prints what a person wants of it:
// a line per package, the output of failures, the tables of tests that measure
// something, the failures once more in short, since a log of thousands of lines
// is often read from its end only, every skipped check with its reason, and the
// counts last.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// event is one line of go test -json (go doc test2json).
type event struct {
	Action, Package, Test, Output string
}

type key struct{ pkg, test string }

type run struct {
	out                     io.Writer
	output                  map[key][]string
	passed, failed, skipped int
	reasons                 map[string]int
	order                   []string
	failures                []string // what each failed test said, in short
}

// Of a failed test's entries the last are repeated, each by its first line's
// first bytes.
const shortEntries, shortLine = 40, 300

func main() {
	r := &run{out: os.Stdout, output: map[key][]string{}, reasons: map[string]int{}}
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
		os.Exit(2)
	}
	r.close()
}

// tables marks tests that print figures: they are shown when they pass, too.
// Those of real runtimes do so for each runtime.
func tables(k key) bool {
	runtimes := strings.HasSuffix(k.pkg, "/profiler/e2e") || strings.HasSuffix(k.pkg, "/sim/conform")
	return runtimes || !strings.Contains(k.test, "/") && (strings.Contains(k.pkg, "/bench") || strings.HasSuffix(k.pkg, "/replay"))
}

func (r *run) read(in io.Reader) error {
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var e event
		if err := json.Unmarshal(sc.Bytes(), &e); err != nil {
			fmt.Fprintln(r.out, sc.Text()) // a build error, not JSON
			continue
		}
		r.event(&e)
	}
	return sc.Err()
}

func (r *run) event(e *event) {
	k := key{e.Package, e.Test}
	switch e.Action {
	case "output", "build-output":
		r.output[k] = append(r.output[k], e.Output)
		return
	case "pass":
		if e.Test != "" {
			r.passed++
			r.show(k, tables(k))
		}
	case "fail":
		if e.Test != "" {
			r.failed++
			r.failure(k)
		}
		r.show(k, true)
		return
	case "skip":
		if e.Test != "" {
			r.skipped++
			r.skip(k)
		}
	case "build-fail":
		r.show(k, true)
	}
	if e.Test == "" && (e.Action == "pass" || e.Action == "skip") {
		r.show(k, true)
	}
	delete(r.output, k)
}

// show prints what a test or package said, but for the lines go test makes of
// every test.
func (r *run) show(k key, wanted bool) {
	if !wanted {
		return
	}
	for _, line := range r.output[k] {
		if !strings.HasPrefix(line, "=== ") && line != "PASS\n" && !strings.HasPrefix(strings.TrimSpace(line), "--- PASS") {
			fmt.Fprint(r.out, line)
		}
	}
	delete(r.output, k)
}

// entry is the first line of what a test logs, or of a panic.
var entry = regexp.MustCompile(`^ *[\w./-]+\.go:\d+: |^panic: |^fatal error: `)

// failure notes what a failed test said.
func (r *run) failure(k key) {
	var entries []string
	for _, line := range r.output[k] {
		if line = strings.TrimRight(line, "\n"); entry.MatchString(line) {
			entries = append(entries, line[:min(len(line), shortLine)])
		}
	}
	r.failures = append(r.failures, "FAILED "+k.pkg+" "+k.test)
	r.failures = append(r.failures, entries[max(0, len(entries)-shortEntries):]...)
}

func (r *run) skip(k key) {
	reason := "no reason given"
	for _, line := range r.output[k] {
		if _, after, ok := strings.Cut(line, "SKIPPED-CHECK:"); ok {
			reason = strings.TrimSpace(after)
		}
	}
	if r.reasons[reason]++; r.reasons[reason] == 1 {
		r.order = append(r.order, reason)
	}
}

func (r *run) close() {
	for _, line := range r.failures {
		fmt.Fprintln(r.out, line)
	}
	for _, reason := range r.order {
		fmt.Fprintf(r.out, "SKIPPED %d: %s\n", r.reasons[reason], reason)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
}
