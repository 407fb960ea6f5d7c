package diff

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/testkit/browser"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// called puts two callers below the functions of a profile: the even ones and the odd ones.
func called(p *export.Profile) *export.Profile {
	n := int32(len(p.Frames))
	p.Frames = append(p.Frames, export.Frame{Name: "Even", ModuleIndex: -1}, export.Frame{Name: "Odd", ModuleIndex: -1})
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
