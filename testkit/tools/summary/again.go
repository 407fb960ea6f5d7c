package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// mostAgain bounds the tests that get a second run. If more tests fail, a busy machine is not
// the reason.
const mostAgain = 6

// failure keeps the output of a failed test or package. It is printed at the end, because a
// second run may follow.
func (r *run) failure(k key) {
	if _, twice := r.said[k]; !twice || r.second != k.pkg {
		r.failures = append(r.failures, k)
		if k.test != "" {
			r.failed++
		}
	}
	r.said[k] = append(r.said[k], r.output[k]...)
	delete(r.output, k)
}

// mended records that a failed test has passed in its second run, with all its subtests.
func (r *run) mended(k key) {
	if r.second != k.pkg {
		return
	}
	r.failures = slices.DeleteFunc(r.failures, func(f key) bool {
		if f != k && (f.pkg != k.pkg || k.test == "" || !strings.HasPrefix(f.test, k.test+"/")) {
			return false
		}
		if f.test != "" {
			r.failed--
			r.unstable = append(r.unstable, f)
		}
		return true
	})
}

// again prints, for each package with failures, its name and a pattern that runs the failed
// tests. A test of a program with many threads may fail because the machine is busy, so a
// second run is worthwhile. again prints nothing if more than a few tests failed. It also
// prints nothing if a package ended early or was not built, because some tests did not run.
func (r *run) again(out io.Writer) {
	tests := map[string][]string{}
	var order []string
	count := 0
	for _, k := range r.failures {
		if slices.ContainsFunc(r.said[k], endsEarly) {
			return
		}
		if k.test == "" || strings.Contains(k.test, "/") {
			continue
		}
		if tests[k.pkg] == nil {
			order = append(order, k.pkg)
		}
		tests[k.pkg] = append(tests[k.pkg], k.test)
		count++
	}
	whole := !slices.ContainsFunc(r.failures, func(k key) bool { return tests[k.pkg] == nil })
	if count > mostAgain || !whole {
		return
	}
	for _, pkg := range order {
		fmt.Fprintf(out, "%s ^(%s)$\n", pkg, strings.Join(tests[pkg], "|"))
	}
}

// endsEarly reports whether a line shows that a test binary did not run to its end.
func endsEarly(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") ||
		strings.HasPrefix(line, "signal: ")
}
