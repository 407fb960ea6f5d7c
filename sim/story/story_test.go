package story

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/sim/rules"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/golden"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func rule(t *testing.T, name string) *rules.Rule {
	t.Helper()
	return must.Get(rules.Find(name))(t)
}

// Shortest finds what the rule warns of, no run within its bounds fails sooner,
// and it is the same each time.
func TestShortest(t *testing.T) {
	for _, name := range []string{"heap", "two-samplers", "gc-callback", "adjusted-seed", "alternate-stack"} {
		t.Run(name, func(t *testing.T) {
			r := rule(t, name)
			got := Shortest(r)
			must.True(t, got != nil && shows(r, got), "%+v", got)
			expect.Equal(t, Shortest(r).Timeline(), got.Timeline(), "another one the second time")
			r.Bounds.MaxSteps = got.Steps - 1
			if sooner := r.Fail(); sooner.Deadlocks+sooner.Faults != 0 {
				t.Errorf("there is one of %d steps, shorter than %d", sooner.First.Steps, got.Steps)
			}
		})
	}
}

// A scenario that goes round is shown where the CLR gives the answer that the
// rule is about.
func TestLoop(t *testing.T) {
	for name, answer := range map[string]string{"unsafe": "STACKSNAPSHOT_UNSAFE",
		"collector-wait": "E_FAIL, since the target was redirected"} {
		res := Shortest(rule(t, name))
		must.True(t, res != nil && res.Outcome == sched.StepLimit, "%s: %+v", name, res)
		short, _ := Trim(res, "")
		told := ""
		for _, e := range short.Trace {
			told += e.Text + "\n"
		}
		if !strings.Contains(told, answer) || !strings.Contains(told, "again and again") ||
			len(short.Trace) > 60 {
			t.Errorf("%s: %d events:\n%s", name, len(short.Trace), short.Timeline())
		}
	}
}

// The kept run shown reports frames, and ends well.
func TestInstructive(t *testing.T) {
	r := rule(t, "heap")
	res, run := Instructive(r)
	must.True(t, res != nil && res.Outcome == sched.Done, "%+v", res)
	again := r.Run(false, sched.Random(run))
	expect.Equal(t, again.Timeline(), res.Timeline(), "its number gives another run")
	text := res.Timeline()
	expect.True(t, strings.Contains(text, "DoStackSnapshot: S_OK"), "no frames are reported:\n%s", text)
}

// A side that is not as it should be is said to be so.
func TestWrong(t *testing.T) {
	r := rule(t, "two-samplers")
	r.Broken, r.Kept = r.Kept, r.Broken
	r.Bounds.Preemptions = 1
	s := Tell(r, true, true)
	wrong := strings.Join(s.Wrong(), "\n")
	expect.True(t, len(s.Wrong()) == 2 && strings.Contains(wrong, "broken: no deadlock") &&
		strings.Contains(wrong, "kept: deadlock after"), "%q", wrong)
	var b strings.Builder
	s.Text(&b, false)
	expect.True(t, strings.Count(b.String(), "NOT AS IT SHOULD BE") == 2, "%v", b.String())
	limited := rule(t, "two-samplers")
	limited.Bounds.MaxRuns = 5
	expect.Contains(t, Explore(limited, false).Wrong, "not every order")
}

func events(texts ...string) (out []sched.Event) {
	for i, s := range texts {
		out = append(out, sched.Event{Step: i + 1, Kind: sched.KindStep, Text: s, Lines: "|"})
	}
	return out
}

func texts(in []sched.Event) string {
	var out []string
	for _, e := range in {
		out = append(out, e.Text)
	}
	return strings.Join(out, "/")
}

func TestTrim(t *testing.T) {
	many := strings.Split(strings.Repeat("a/b/c/", 50), "/")
	for _, c := range []struct {
		name    string
		outcome sched.Outcome
		in      []string
		want    string
	}{
		{"nothing to do", sched.Done, []string{"a", "b"}, "a/b"},
		{"equal ones", sched.Done, []string{"a", "b", "b", "b"}, "a/b (3 times)"},
		{"a block twice", sched.Done, strings.Split("x/a/b/c/d/a/b/c/d/y", "/"),
			"x/a/b/c/d/(the last 4 events again)/y"},
		{"too short a block", sched.Done, strings.Split("x/a/b/a/b/y", "/"), "x/a/b/a/b/y"},
		{"a loop", sched.StepLimit, append([]string{"x"}, many[:150]...),
			"x/a/b/c/(and so on: the last 3 events again and again)"},
		{"a loop cut in its midst", sched.StepLimit, append([]string{"x"}, many[:149]...),
			"x/a/b/c/(and so on: the last 3 events again and again)"},
		{"empty", sched.Done, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			short, _ := Trim(&sched.Result{Outcome: c.outcome,
				Actors: []string{"A"}, Trace: events(c.in...)}, "")
			expect.Equal(t, texts(short.Trace), c.want)
		})
	}
}

func TestCut(t *testing.T) {
	in := events("a", "b", "ends", "c")
	in[2].Kind = sched.KindEnd
	short, left := Trim(&sched.Result{Steps: 4, Actors: []string{"sampler"}, Trace: in}, "sampler")
	expect.True(t, texts(short.Trace) == "a/b/ends" && strings.Contains(left, "steps 4 to 4"),
		"%s, %q", texts(short.Trace), left)
	expect.True(t, len(in) == 4 && in[3].Text == "c", "the trace given was changed")
}

// Pictures are XML whatever programs call their threads.
func TestSequence(t *testing.T) {
	res := &sched.Result{Actors: []string{"<a>&\x00", "b"},
		Trace: events("]]>", "\xff\"'", strings.Repeat("x", 300))}
	res.Trace[0].Lines = "|" // fewer than actors
	res.Trace[1].Kind, res.Trace[1].Text = sched.KindSuspend, "suspend b: count 1"
	svg := Sequence(res)
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err, svg)
		}
	}
	expect.True(t, strings.Contains(svg, "&lt;a&gt;&amp;?") && strings.Count(svg, "url(#a)") == 1, "%s", svg)
}

func TestNumber(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000",
		1234567: "1,234,567", -1000: "-1,000"} {
		expect.Equal(t, Number(n), want, n)
	}
}

const docs = "../../docs"

// counted are the lines that only a whole exploration can produce.
var counted = regexp.MustCompile(`(?m)^(.*interleavings, |The sampler passes ).*$`)

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
		must.Do(t, Write(docs, stories))
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
	expect.True(t, err == nil && len(pictures) == len(files)-1,
		"%d pictures in docs/%s, want %d (%v): run make rules", len(pictures), Pictures, len(files)-1, err)
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
