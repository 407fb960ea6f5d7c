package export

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/browser"
)

// The page leaves out what starts an async method, and shows it again when it is unfolded. Helpers
// stay where a stack ends in them or where they call something else too.
func TestPageFoldsAsync(t *testing.T) {
	b := browser.Find(t, "the page of async methods was not used")
	const rs = "System.Runtime.CompilerServices."
	p := &Profile{Threads: []Thread{{1, "a"}}}
	for _, name := range []string{"A", rs + "AsyncTaskMethodBuilder<int>.Start<T>", rs + "AsyncMethodBuilderCore.Start<T>(T&)", "A (async)", "B", rs + "AsyncMethodBuilderCore.Start<U>", "GC"} {
		p.Frames = append(p.Frames, Frame{Name: name, Module: "m", ModuleIndex: -1, Class: ClassManaged})
	}
	for _, s := range [][]int32{{3, 2, 1, 0}, {3, 5, 4}, {6, 5, 4}, {1, 6}} {
		p.Stacks = append(p.Stacks, Stack{Frames: s, Count: 1, CPUNanos: 1e7, WallNanos: 1e7, Complete: true})
	}
	script := `<script>addEventListener('load', () => { const out = []; for (const hash of ['#m=samples', '#m=samples&f=0']) {
history.replaceState(null, '', hash); begin();
const leaf = i => tree.self[i] > 0, path = i => pathOf(tree, i).slice(1).map(j => symbols[tree.symbol[j]].name.replace(/^.*Builder\w*/, 'X').replace(/<.*/, '')).join('/');
out.push(Array.from({ length: tree.n }, (_, i) => i).filter(leaf).map(path).sort().join(' ')); }
const pre = document.createElement('pre'); pre.className = 'answer'; pre.textContent = out.join('|'); document.body.append(pre); });</script></body>`
	dom, log := b.Load(t, []byte(strings.Replace(string(written(t, WriteHTML, p)), "</body>", script, 1)), "")
	_, dom, _ = strings.Cut(dom, `<pre class="answer">`)
	got, _, _ := strings.Cut(dom, "</pre>")
	const want = "A/A (async) B/X/A (async) B/X/GC GC/X|A/X/X/A (async) B/X/A (async) B/X/GC GC/X"
	if got = strings.ReplaceAll(got, ".Start", ""); got != want {
		t.Errorf("got  %s\nwant %s\n%s", got, want, log)
	}
}
