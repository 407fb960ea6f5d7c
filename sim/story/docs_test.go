package story

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"github.com/seedwalk/seedwalk/sim/rules"
	"github.com/seedwalk/seedwalk/testkit/golden"
)

const docs = "../../docs"

// counted are the lines that only a whole exploration can produce.
var counted = regexp.MustCompile(`(?m)^(.*interleavings, |Nothing found in ).*$`)

// docs/rules.md is what the scenarios tell today. With -short the orders are not
// counted again, everything else is compared.
func TestDocsAreCurrent(t *testing.T) {
	whole := !testing.Short() || *golden.Update
	var stories []*Story
	for _, r := range rules.All() {
		r.Bounds.Workers = runtime.NumCPU()
		s := &Story{Rule: r, Broken: &Side{}, Kept: &Side{}}
		if whole {
			s = Tell(r, true, true)
		} else {
			s.pick()
		}
		for _, wrong := range s.Wrong() {
			t.Error(wrong)
		}
		stories = append(stories, s)
	}
	if *golden.Update && !t.Failed() {
		if err := Write(docs, stories); err != nil {
			t.Fatal(err)
		}
	}
	files := Docs(stories)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(docs, filepath.FromSlash(name)))
		have := string(got)
		if !whole {
			want, have = counted.ReplaceAllString(want, "N"), counted.ReplaceAllString(have, "N")
		}
		if err != nil || have != want {
			t.Errorf("docs/%s is not what the scenarios tell (%v): run make rules, and look at what has changed%s", name, err, difference(have, want))
		}
	}
	pictures, err := filepath.Glob(filepath.Join(docs, Pictures, "*"))
	if err != nil || len(pictures) != len(files)-1 {
		t.Errorf("%d pictures in docs/%s, want %d (%v): run make rules", len(pictures), Pictures, len(files)-1, err)
	}
}

// difference shows where two texts part.
func difference(have, want string) string {
	n := 0
	for n < len(have) && n < len(want) && have[n] == want[n] {
		n++
	}
	around := func(s string) string { return s[max(0, n-80):min(len(s), n+80)] }
	return "\nhave ..." + around(have) + "\nwant ..." + around(want)
}
