package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// result is one line of a benchmark's output.
type result struct {
	name string
	ns   float64
}

var line = regexp.MustCompile(`^Benchmark(\S+)\s+\d+\s+(.*)$`)

// parse reads the output of a test program. If a row reports time per frame, parse uses that
// time, because old and new may find different numbers of frames per operation.
func parse(out []byte) (all []result) {
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		m := line.FindStringSubmatch(sc.Text())
		if m == nil {
			continue
		}
		if ns, ok := time(m[2]); ok {
			all = append(all, result{m[1], ns})
		}
	}
	return all
}

// time returns the figure of a line that counts. The columns are values and units in turn.
func time(columns string) (ns float64, ok bool) {
	f := strings.Fields(columns)
	for i := 0; i+1 < len(f); i += 2 {
		v, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			return 0, false
		}
		switch f[i+1] {
		case "ns/frame":
			return v, true
		case "ns/op":
			ns, ok = v, true
		}
	}
	return ns, ok
}

// renamed lists rows that had other names in older checkouts.
var renamed = map[string]string{}

// before returns the name of a new checkout's row in the old checkout.
func before(name string) string {
	if was, ok := renamed[name]; ok {
		return was
	}
	return name
}

func elements(name string) []string { return strings.Split(name, "/") }

type row struct {
	pkg, name string
	old, new  float64
}

func (r row) ratio() float64 { return r.new / r.old }

type table []row

// slower returns the rows above the limit, the worst first.
func (t table) slower(limit float64) (slow table) {
	for _, r := range t {
		if r.ratio() > limit {
			slow = append(slow, r)
		}
	}
	slices.SortStableFunc(slow, func(a, b row) int { return cmp.Compare(b.ratio(), a.ratio()) })
	return slow
}

func (t table) print(w io.Writer, limit float64, all bool) {
	if len(t) == 0 {
		fmt.Fprintln(w, "no rows in common")
		return
	}
	slow := t.slower(limit)
	show := slow
	if all {
		show = t.slower(0)
	}
	fmt.Fprintf(w, "%-70s %10s %10s %6s\n", "row", "old ns", "new ns", "ratio")
	for _, r := range show {
		fmt.Fprintf(w, "%-70s %10.4g %10.4g %6.2f\n", r.pkg+" "+r.name, r.old, r.new, r.ratio())
	}
	sorted := t.slower(0)
	best := sorted[len(sorted)-1]
	fmt.Fprintf(w, "%d rows, %d slower than %.2f; median %.2f, worst %.2f, best %.2f (%s %s)\n",
		len(t), len(slow), limit, sorted[len(t)/2].ratio(), sorted[0].ratio(),
		best.ratio(), best.pkg, best.name)
}
