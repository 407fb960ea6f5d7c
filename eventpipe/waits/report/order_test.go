package report_test

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/waits/report"
	"github.com/seedwalk/seedwalk/testkit/browser"
)

// The page orders its rows by time waited, by name, or by first wait, owners among them.
func TestPageOrder(t *testing.T) {
	b := browser.Find(t, "the orders of rows were not used")
	const script = `<script>addEventListener('load', () => {
	data.threads = ['main 10', 'work 9', 'main 2', 'owner 7', 'silent 1'];
	data.waits = [[0, 0, 0, 50, 9, 0, 3, 0, 0], [1, 1, 0, 10, 5, 0, -1, 0, 0], [2, 1, 0, 70, 2, 0, -1, 0, 0]];
	for (const by of ['time', 'name', 'first']) {
		$('order').value = by;
		$('order').dispatchEvent(new Event('change'));
		const out = document.createElement('pre');
		out.textContent = by + ': ' + rows.map(t => data.threads[t]).join(', ');
		document.body.append(out);
	}
});</script></body>`
	var page strings.Builder
	if err := report.WriteHTML(&page, recorded(t)); err != nil {
		t.Fatal(err)
	}
	dom, log := b.Load(t, []byte(strings.Replace(page.String()+"</body>", "</body>", script, 1)), "")
	for _, want := range []string{
		"time: main 10, work 9, main 2, owner 7<",
		"name: main 2, main 10, owner 7, work 9<",
		"first: work 9, main 10, owner 7, main 2<",
	} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page lacks %q\n%s", want, log)
		}
	}
}
