package diff

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/testkit/browser"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// profileOf draws a random profile. means has the expected number of samples of each function.
// The times of a run scatter by 4 %, as those of real programs do.
func profileOf(run *rand.Rand, means []float64, speed float64) *export.Profile {
	return scattered(run, means, speed, 0.04)
}

func scattered(run *rand.Rand, means []float64, speed, scatter float64) *export.Profile {
	p := &export.Profile{Threads: []export.Thread{{ID: 1, Name: "main"}}}
	for i, mean := range means {
		mean *= 1 + scatter*run.NormFloat64()
		n := int64(mean + run.NormFloat64()*math.Sqrt(mean))
		p.Frames = append(p.Frames, export.Frame{Name: fmt.Sprintf("f%d", i), ModuleIndex: -1})
		if n > 0 {
			p.Stacks = append(p.Stacks,
				export.Stack{Frames: []int32{int32(i)}, Count: n, CPUCount: n,
					CPUNanos: int64(float64(n) * 1e7 * speed), Complete: true})
		}
	}
	return p
}

// means is a typical profile: a few hot functions and many small ones.
func means() (all []float64) {
	for i := range 120 {
		all = append(all, 3000/float64(1+i))
	}
	return all
}

// Two runs of one version do not differ, in at least 95 of 100 comparisons, on machines of
// different speed too.
func TestNoDifference(t *testing.T) {
	run := rand.New(rand.NewPCG(1, 2))
	alarms := 0
	for i := range 400 {
		r := must.Get(Compare(profileOf(run, means(), 1), profileOf(run, means(), 1+0.3*float64(i%2))))(t)
		if r.Differs() {
			alarms++
		}
	}
	expect.Figures(t, alarms <= 20, "%d false differences in 400 comparisons", alarms)
}

// CPU time is not compared with samples of waiting threads.
func TestOtherMetric(t *testing.T) {
	run := rand.New(rand.NewPCG(1, 2))
	a, b := profileOf(run, means(), 1), profileOf(run, means(), 1)
	for i := range b.Stacks {
		b.Stacks[i].CPUNanos, b.Stacks[i].CPUCount = 0, 0
	}
	_, err := Compare(a, b)
	expect.True(t, err != nil && strings.Contains(err.Error(), "metric cpu and the second one samples"),
		"%v", err)
	a.First, b.First = "samples", "samples"
	_, err = Compare(a, b)
	expect.Equal(t, err, nil)
}

// A regression is the first row, though the other machine is faster, and nothing else is
// significant beside it.
func TestRegression(t *testing.T) {
	run := rand.New(rand.NewPCG(3, 4))
	found, others := 0, 0
	for range 100 {
		after := means()
		after[9] *= 2
		r := must.Get(Compare(profileOf(run, means(), 1), profileOf(run, after, 0.8)))(t)
		if r.Differs() && r.Rows[0].Name == "f9" && r.Rows[0].Delta > 0 {
			found++
		}
		if len(r.Rows) > 1 && r.Rows[1].Significant {
			others++
		}
	}
	expect.Figures(t, found >= 95 && others <= 5, "found %d of 100, %d with others", found, others)
}

// A regression of 10 % is the first row in at least 9 of 10 comparisons. One case adds 10 % of the time of
// the whole program to a method that had 2 % of it. The others add 10 % to the own time of a method with
// 24,000 samples or more. Times then scatter by 0.7 % between two runs. A method that did not change is no
// difference.
func TestSmallRegression(t *testing.T) {
	for _, c := range []struct {
		name          string
		long, scatter float64
		method        int
		slower        func(own, all float64) float64
	}{
		{"10 % of the program", 1, 0.028, 9, func(own, all float64) float64 { return own + 0.1*all }},
		{"10 % of the second method", 16, 0.005, 1, func(own, all float64) float64 { return 1.1 * own }},
		{"10 % of the hottest method", 16, 0.005, 0, func(own, all float64) float64 { return 1.1 * own }},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := rand.New(rand.NewPCG(11, 12))
			before, all := means(), 0.0
			for i := range before {
				before[i] *= c.long
				all += before[i]
			}
			after, name := slices.Clone(before), fmt.Sprintf("f%d", c.method)
			after[c.method] = c.slower(before[c.method], all)
			found, others := 0, 0
			for range 100 {
				r := must.Get(Compare(scattered(run, before, 1, c.scatter),
					scattered(run, after, 1, c.scatter)))(t)
				if r.Differs() && r.Rows[0].Name == name && r.Rows[0].Delta > 0 {
					found++
				}
				if r.Rows[0].Significant && r.Rows[0].Name != name || r.Rows[1].Significant {
					others++
				}
			}
			expect.Figures(t, found >= 90 && others <= 5, "found %d of 100, %d with others", found, others)
		})
	}
}

// quantile agrees with the integral of Student's density.
func TestQuantile(t *testing.T) {
	for _, n := range []float64{6, 10, 30, 200} {
		for _, p := range []float64{0.025, 0.001, 1e-4} {
			g, _ := math.Lgamma((n + 1) / 2)
			h, _ := math.Lgamma(n / 2)
			tail := 0.0
			for x := quantile(p, n); x < 1000; x *= 1.001 {
				tail += math.Exp(g-h) / math.Sqrt(n*math.Pi) * math.Pow(1+x*x*1.001/n, -(n+1)/2) * x / 1000
			}
			expect.True(t, tail/p >= 0.8 && tail/p <= 1.2,
				"%g degrees of freedom: P(T > %.3f) = %.3g, want %g", n, quantile(p, n), tail, p)
		}
	}
}

// A new function and one that is gone are differences. Profiles without samples are equal.
func TestNewAndGone(t *testing.T) {
	run := rand.New(rand.NewPCG(5, 6))
	before, after := append(means(), 300, 0), append(means(), 0, 300)
	r, err := Compare(profileOf(run, before, 1), profileOf(run, after, 1))
	if err != nil || len(r.Rows) < 2 || r.Rows[0].Name != "f121" || !r.Rows[1].Significant ||
		r.Rows[1].Name != "f120" || r.Rows[1].Delta > 0 {
		t.Errorf("%v %+v", err, r.Rows[:2])
	}
	r, err = Compare(&export.Profile{}, &export.Profile{})
	expect.True(t, err == nil && !r.Differs() && r.Scale == 1, "%v %+v", err, r)
}

// Recordings of different programs have few functions in common. Short ones of one program differ by chance.
func TestDifferentPrograms(t *testing.T) {
	run := rand.New(rand.NewPCG(17, 18))
	few := make([]float64, 300)
	for i := range few {
		few[i] = 0.7
	}
	a, same, other := profileOf(run, means(), 1), profileOf(run, means(), 1), profileOf(run, means(), 1)
	for i := range other.Frames {
		other.Frames[i].Name = fmt.Sprintf("g%d", i)
	}
	for _, c := range []struct {
		a, b   *export.Profile
		common float64
		want   string
	}{
		{a, same, 1, "scale        most functions took "},
		{a, other, 0, "scale        times are compared as they are: fewer than 8 functions"},
		{a, other, 0, "warning      only 0 % of the program's time"},
		{profileOf(run, few, 1), profileOf(run, few, 1), 1, "scale        times are compared as they are"},
	} {
		r := must.Get(Compare(c.a, c.b))(t)
		var text strings.Builder
		r.WriteText(&text, "nanoseconds", 3, false)
		warns := strings.Contains(text.String(), "warning")
		expect.True(t, math.Abs(r.Common-c.common) <= 0.02 && strings.Contains(text.String(), c.want) &&
			warns == (c.common == 0), "%v\n%s", r.Common, text.String())
	}
}

// Time that was not sampled is an estimate: it is no difference, however long it is.
func TestNotSampled(t *testing.T) {
	run := rand.New(rand.NewPCG(7, 8))
	a, b := profileOf(run, means(), 1), profileOf(run, means(), 1)
	b.Frames = append(b.Frames,
		export.Frame{Name: "[short threads]", ModuleIndex: -1, Class: export.ClassUnsampled})
	b.Stacks = append(b.Stacks, export.Stack{Frames: []int32{int32(len(b.Frames) - 1)}, CPUNanos: 5e9})
	if r, err := Compare(a, b); err != nil || r.Differs() {
		t.Errorf("%v %+v", err, r.Rows[0])
	}
}

// The work of the runtime depends on the moment: a difference there must be larger than one of the program.
func TestRuntimeScatters(t *testing.T) {
	for _, c := range []struct {
		name   string
		class  export.Class
		factor float64
		want   bool
	}{{"managed", export.ClassManaged, 1.6, true}, {"runtime", export.ClassRuntime, 1.6, false},
		{"runtime, much", export.ClassRuntime, 3, true}, {"kernel", export.ClassKernel, 1.6, false}} {
		after := means()
		after[3] *= c.factor
		run := rand.New(rand.NewPCG(9, 10))
		a, b := profileOf(run, means(), 1), profileOf(run, after, 1)
		a.Frames[3].Class, b.Frames[3].Class = c.class, c.class
		if r, err := Compare(a, b); err != nil || r.Differs() != c.want {
			t.Errorf("%s: differs %v, want %v, %v", c.name, r.Differs(), c.want, err)
		}
	}
}

// A method that takes five times as long is a difference, even if the times of all functions scatter by
// more than a third.
func TestScatterOfLargeChange(t *testing.T) {
	r := &Result{Scale: 1, Scatter: 0.37, freedom: 65}
	for i := range 60 {
		side := Side{Self: 1e9, Total: 1e9, Count: 1000}
		r.Rows = append(r.Rows, Row{Name: string(rune('a' + i)), A: side, B: side})
	}
	r.Rows[30].B = Side{Self: 5e9, Total: 5e9, Count: 5000}
	r.A, r.B = Side{Self: 60e9, Count: 60000}, Side{Self: 64e9, Count: 64000}
	r.judge()
	expect.True(t, r.Rows[0].Significant && r.Rows[0].Delta == 4e9 && !r.Rows[1].Significant,
		"%+v, %+v", r.Rows[0], r.Rows[1])
}

// called puts two callers below the functions of a profile: the even ones and the odd ones.
func called(p *export.Profile) *export.Profile {
	n := int32(len(p.Frames))
	p.Frames = append(p.Frames, export.Frame{Name: "Even", ModuleIndex: -1},
		export.Frame{Name: "Odd", ModuleIndex: -1})
	for i := range p.Stacks {
		s := &p.Stacks[i]
		s.Frames = append(s.Frames, n+s.Frames[0]%2)
	}
	return p
}

// The page of a comparison lists the regression first, and its flame graph says by color, sign, and
// words what became slower and what faster. Node by node it judges as the terminal does.
func TestPageInBrowser(t *testing.T) {
	b := browser.Find(t, "the page of a comparison was not looked at")
	run := rand.New(rand.NewPCG(7, 8))
	before, after := append(means(), 300, 0), append(means(), 0, 300)
	after[9] *= 2
	one, two := called(profileOf(run, before, 1)), called(profileOf(run, after, 0.8))
	r := must.Get(Compare(one, two))(t)
	var page bytes.Buffer
	must.Do(t, r.WritePage(&page, one, two, [2]string{"<one>.swrec", "two.swrec"}))
	const script = `<script>addEventListener('load', () => {
	const say = x => { const out = document.createElement('pre'); out.className = 'answer'; out.textContent = x; document.body.append(out); };
	const find = name => Array.from({ length: tree.n }, (_, i) => i).find(i => i > 0 && symbols[tree.symbol[i]].name === name);
	const rows = () => [...document.querySelectorAll('#text tbody tr')].map(r => r.textContent[0] + ' ' + r.querySelector('.name').textContent + ' ' + r.querySelector('i').style.getPropertyValue('--c'));
	say(state.shape + ' ' + rows().slice(0, 4).join('|'));
	say(document.getElementById('title').textContent + ' ' + document.getElementById('facts').textContent.replace(/[\d.]+/g, '0'));
	setShape('flame');
	say([...document.querySelectorAll('#legend > *')].map(x => x.textContent + ' ' + x.querySelectorAll('i').length).join('|'));
	const kind = name => { const i = find(name); return i === undefined ? name + ' is not there' : name + ' ' + changeColor(changeOf(tree, i)) + ' ' + picture.fill(i, symbols[tree.symbol[i]]); };
	const kinds = () => ['f9', 'f121', 'f120', 'f0'].map(kind).join('|');
	say(kinds());
	say(describe(find('f9')).replace(/\d[\d.]*/g, '0'));
	turnAround();
	say(kinds() + ' ' + location.hash);
	turnAround();
	callersOf(tree.symbol[find('f9')]);
	say(kinds() + ' ' + tree.n);
	document.getElementById('thread').value = '-2'; document.getElementById('thread').dispatchEvent(new Event('change'));
	setShape('icicle');
	say(kinds() + ' ' + location.hash + ' ' + rootLabel().replace(/[\d.,]+/, '0'));
	showTip(find('f120'), 9, 9);
	say(document.getElementById('tip').innerText.replace(/\s+/g, ' ').replace(/\d[\d.,]*\d|\d/g, '0'));
	document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'd', bubbles: true }));
	document.querySelector('#text tbody .name button').click();
	say(state.shape + ' ' + symbols[state.of].name);
	const same = DIFF.rows.every(r => { const [name, , , , , , , , sig] = r, i = Array.from({ length: whole.n }, (_, k) => k).find(k => symbols[whole.symbol[k]]?.name === name); return i === undefined || whole.own[0][i] !== whole.total[i] || (changeOf(whole, i).significant ? 1 : 0) === sig; });
	say(same);
});</script></body>`
	dom, log := b.Load(t, []byte(strings.Replace(page.String(), "</body>", script, 1)), "")
	browser.Answers(t, dom, log, nil,
		"changes ▲ f121 var(--slower3)|▲ f9 var(--slower2)|▼ f120 var(--faster3)|+ f1  (may be noise) var(--same)",
		"<one>.swrec → two.swrec before: 0m0s, 0 samples  ·  after: 0m0s, 0 samples  ·  most functions took 0 times as long, and times after are divided by that  ·  times of single functions scatter by 0 %",
		"▲ slower 3|▼ faster 3|no difference beyond noise 1",
		"f9 slower2 #f2a17f|f121 slower3 #e2654f|f120 faster3 #5a9fd0|f0 same #e2e6ea",
		"f0, managed, 0 % of total, 0 % self, 0 cpu samples, slower by 0 s, calls nothing",
		"f9 slower2 #f2a17f|f121 slower3 #e2654f|f120 faster3 #5a9fd0|f0 same #e2e6ea #m=cpu&v=flame&o=heavy&f=1&i=1",
		"f9 slower2 #f2a17f|f121 is not there|f120 is not there|f0 is not there 3",
		"f9 slower2 #f2a17f|f121 slower3 #e2654f|f120 faster3 #5a9fd0|f0 same #e2e6ea #m=cpu&t=before&v=icicle&o=heavy&f=1&of=11 before - 0 s",
		"f0 class managed cpu samples 0 (± 0 %) cpu time 0 s self 0 s (0 %) of total 0 % of parent 0 % before 0 s, 0 cpu samples after 0 ns, 0 cpu samples difference -0 s (± 0 ms), faster by 0 s",
		"callers f121", "true")
}
