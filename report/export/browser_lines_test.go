package export

import (
	"fmt"
	"html"
	"math"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/browser"
)

// lined is a recording of 400 samples: a method with two lines, one that was compiled into it, and one whose
// file is not known.
func lined() *Profile {
	method := func(name, file string, line int) Frame {
		return Frame{Name: name, Module: "App", ModuleIndex: -1, File: file, Line: line, Class: ClassManaged}
	}
	p := &Profile{
		Frames: []Frame{
			method("App.Main", "/src/Main.cs", 3), method("App.Sum", "/src/deep/Sum.cs", 10), method("App.Sum", "/src/deep/Sum.cs", 12),
			method("App.Square (inlined)", "/src/deep/Square.cs", 7), method("App.Unknown"+strings.Repeat(".ALongNameWithoutAnyPlaceToBreakIt", 9), "", 0),
		},
		Threads: []Thread{{1, "main"}},
	}
	for i, n := range []int64{100, 44, 250, 6} {
		p.Stacks = append(p.Stacks, Stack{Frames: []int32{int32(i + 1), 0}, Count: n, CPUCount: n, WallNanos: n * 1e7, CPUNanos: n * 1e7, Complete: true})
	}
	p.Stacks[2].Frames = []int32{3, 1, 0}
	p.Stats.Samples, p.Stats.Complete = 400, 400
	return p
}

// The table and the tooltips have lines, also of calls and in the inverted view, marks of inlined methods,
// and the error of each share at several sizes, in light and dark, without scrolling sideways and with
// enough contrast for each class.
func TestPageLines(t *testing.T) {
	b := browser.Find(t, "the lines of the page were not looked at")
	const script = `<script>addEventListener('load', () => {
	const answer = x => { const e = document.createElement('pre'); e.className = 'answer'; e.textContent = x; document.body.append(e); };
	const luminance = c => { const [r, g, b] = c.match(/[\d.]+/g).map(v => c.startsWith('color') ? Number(v) : v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const contrast = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
	const at = (e, name) => getComputedStyle(e)[name], $1 = what => document.querySelector(what), ground = at(document.body, 'backgroundColor');
	const fits = () => $1('html').scrollWidth <= innerWidth && $1('html').scrollHeight <= innerHeight && $1('#text').scrollWidth <= innerWidth;
	const find = name => Array.from({ length: tree.n }, (_, i) => i).find(i => i > 0 && symbols[tree.symbol[i]].name.startsWith(name));
	const tip = name => { showTip(find(name), 9, 9); return $1('#tip').innerText.replace(/\s+/g, ' '); };
	const out = [innerWidth, luminance(ground) < 0.5 ? 'dark' : 'light', fits()];
	const tips = [tip('App.Sum'), tip('App.Square')].join('|');
	out.push($1('#tip').getBoundingClientRect().right <= innerWidth, contrast(at($1('#tip td'), 'color'), at($1('#tip'), 'backgroundColor')) >= 4.5);
	turnAround();
	const inverted = tip('App.Sum') + '|' + (showTip(tree.child[tree.first[find('App.Sum')]], 9, 9), $1('#tip').innerText.replace(/\s+/g, ' '));
	turnAround();
	callersOf(tree.symbol[find('App.Sum')]);
	const sandwich = [1, 2, 3].map(i => { showTip(i, 9, 9); return $1('#tip').innerText.replace(/\s+/g, ' ').replace(/module.*?(own lines|call|of total)/, '$1').replace(/ of total.*/, ''); }).join('|');
	setShape('top');
	const rows = [...document.querySelectorAll('#text tbody tr')], bar = $1('#text td.bar i'), error = $1('#text td.bar b');
	out.push(fits(), rows.length, contrast(at($1('#text small'), 'color'), ground) >= 4.5, data.classes.every(c => { bar.style.setProperty('--c', 'var(--' + c + ')'); return contrast(at(error, 'borderLeftColor'), at(bar, 'backgroundColor')) >= 3; }), contrast(at(error, 'borderLeftColor'), ground) >= 4.5, bar.offsetWidth > 0 && error.offsetWidth >= 3);
	answer(out.join(' '));
	answer(tips);
	answer(inverted);
	answer(sandwich);
	answer(rows.slice(0, 3).map(r => r.querySelector('td.name').innerText.replace(/\s+/g, ' ').slice(0, 60) + ' ' + ['left', 'width'].map(k => parseFloat(r.querySelector('td.bar b').style[k]).toFixed(2)).join('+') + ' of ' + r.querySelector('td.bar i').style.width).join('|'));
});</script></body>`
	page := []byte(strings.Replace(string(written(t, WriteHTML, lined())), "</body>", script, 1))
	bar := func(part float64) string {
		low, high := wilson(part/400, 400)
		return fmt.Sprintf("%.2f+%.2f of %g%%", 100*low, 100*(high-low), 100*part/400)
	}
	tips := "App.Sum module App class managed cpu samples 394 (± 5 %) cpu time 3.9 s self 1.4 s (36 %) own lines Sum.cs:10 69 %, :12 31 % called at Main.cs:3 100 % of total 99 % (97 to 99 %) of parent 99 %" +
		"|App.Square (inlined) module App class managed cpu samples 250 (± 6 %) cpu time 2.5 s self 2.5 s (63 %) own lines Square.cs:7 100 % called at Sum.cs:10 100 % of total 63 % (58 to 67 %) of parent 63 % the JIT compiler put its code into its caller"
	inverted := "App.Sum module App class managed cpu samples 144 (± 8 %) cpu time 1.4 s own lines Sum.cs:10 69 %, :12 31 % of total 36 % (31 to 41 %) of callee 36 %" +
		"|App.Main module App class managed cpu samples 144 (± 8 %) cpu time 1.4 s calls it at Main.cs:3 100 % of total 36 % (31 to 41 %) of callee 100 %"
	sandwich := "App.Sum own lines Sum.cs:10 69 %, :12 31 %|App.Main calls it at Main.cs:3 100 %|App.Square (inlined) called at Sum.cs:10 100 %"
	rows := "App.Square (inlined)Square.cs:7 100 % " + bar(250) + "|App.SumSum.cs:10 69 % " + bar(144) + "|App.Unknown"
	for _, c := range []struct {
		width, height int
		scheme        string
	}{{1400, 800, "light"}, {1400, 800, "dark"}, {1024, 768, "light"}, {768, 1024, "dark"}, {500, 900, "light"}, {500, 900, "dark"}} {
		flags := []string{fmt.Sprintf("--window-size=%d,%d", c.width, c.height)}
		if c.scheme == "dark" {
			flags = append(flags, "--blink-settings=preferredColorScheme=0")
		}
		dom, log := b.Load(t, page, "", flags...)
		for _, want := range []string{fmt.Sprintf("%d %s true true true true 4 true true true true", c.width, c.scheme), tips, inverted, sandwich, rows} {
			_, dom, _ = strings.Cut(dom, `<pre class="answer">`)
			got, _, _ := strings.Cut(dom, "</pre>")
			if got = html.UnescapeString(got); !strings.HasPrefix(got, want) {
				t.Errorf("%d %s:\ngot  %s\nwant %s", c.width, c.scheme, got, want)
			}
		}
		if strings.Contains(log, "CONSOLE") {
			t.Errorf("the browser complains:\n%s", log)
		}
	}
}

// wilson returns the bounds at which the share p that was seen among n samples is 1.96 standard deviations
// of the binomial distribution away: found by halving, not by the formula of the page.
func wilson(p, n float64) (low, high float64) {
	bound := func(from, to float64) float64 {
		for range 100 {
			q := (from + to) / 2
			if math.Abs(p-q) > 1.96*math.Sqrt(q*(1-q)/n) {
				from = q
			} else {
				to = q
			}
		}
		return to
	}
	return bound(0, p), bound(1, p)
}
