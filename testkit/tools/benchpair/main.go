// Command benchpair (`make bench-pair`) compares the benchmarks of two checkouts. It builds
// both once. Then many short rounds of the old and the new checkout alternate, and the
// fastest round of each row counts. Rows that look slower than the limit are measured
// again alone, so that one disturbed row is not reported.
//
// A change of the machine's speed affects both checkouts. So it matters little here, while
// two whole runs of `make bench` cannot be compared.
//
//	go run ./testkit/tools/benchpair -base ../old ./unwind/amd64 ./stack/seed
//
// It exits with 1 if a row is slower than the limit.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

type options struct {
	base, head string
	bench      string
	benchtime  string
	count      int
	rounds     int
	again      int
	limit      float64
	all        bool
	packages   []string
}

func main() {
	var o options
	flag.StringVar(&o.base, "base", "", "the `folder` of the old checkout")
	flag.StringVar(&o.head, "head", ".", "the `folder` of the new checkout")
	flag.StringVar(&o.bench, "bench", ".", "which benchmarks, as of go test")
	flag.StringVar(&o.benchtime, "benchtime", "1ms",
		"of one measurement: short ones fit between two turns of the scheduler")
	flag.IntVar(&o.count, "count", 10, "measurements of a row in one round")
	flag.IntVar(&o.rounds, "rounds", 10, "old and new in turn, so often")
	flag.IntVar(&o.again, "again", 3, "how often rows above the limit are measured again")
	flag.Float64Var(&o.limit, "limit", 1.03, "a row is slower above this ratio")
	flag.BoolVar(&o.all, "v", false, "print every row, not only the slower ones")
	flag.Parse()
	if o.packages = flag.Args(); len(o.packages) == 0 {
		o.packages = []string{"./cfi", "./unwind/amd64", "./unwind/arm64", "./stack/seed", "./stack/merge"}
	}
	slower, err := o.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchpair:", err)
		os.Exit(2)
	}
	if slower > 0 {
		os.Exit(1)
	}
}

// run measures every package and prints the table. It returns the number of rows that are
// slower than the limit.
func (o *options) run() (slower int, err error) {
	if o.base == "" {
		return 0, fmt.Errorf("-base names the checkout to compare with")
	}
	dir, err := os.MkdirTemp("", "benchpair")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	var all table
	for _, pkg := range o.packages {
		p, err := o.build(dir, pkg)
		if err != nil {
			return 0, err
		}
		t, err := o.measure(p)
		if err != nil {
			return 0, err
		}
		all = append(all, t...)
	}
	all.print(os.Stdout, o.limit, o.all)
	return len(all.slower(o.limit)), nil
}

// measure runs all rounds of a package, then those of its slower rows again.
func (o *options) measure(p *pair) (table, error) {
	if err := p.rounds(o, o.bench); err != nil {
		return nil, err
	}
	for range o.again {
		slow := p.table().slower(o.limit)
		if len(slow) == 0 {
			break
		}
		for _, name := range families(slow) {
			if err := p.rounds(o, name); err != nil {
				return nil, err
			}
		}
	}
	return p.table(), nil
}

// families returns patterns that select the rows of t and few others. Rows of one benchmark
// share the first element of a pattern.
func families(t table) (patterns []string) {
	subs := map[string][]string{}
	for _, r := range t {
		path := elements(r.name)
		if len(path) == 1 {
			path = append(path, "")
		}
		subs[path[0]] = append(subs[path[0]], regexp.QuoteMeta(path[1]))
	}
	for first, names := range subs {
		slices.Sort(names)
		pattern := "^Benchmark" + first + "$"
		if names[0] != "" {
			pattern += "/^(" + strings.Join(slices.Compact(names), "|") + ")$"
		}
		patterns = append(patterns, pattern)
	}
	slices.Sort(patterns)
	return patterns
}
