package export

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/report/export/page"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// dataTag begins the data of a page.
const dataTag = `<script type="application/json" id="data">`

// dataOf takes the data out of a page the way a browser does: from the start
// tag to the first end tag.
func dataOf(t *testing.T, page string) *pageData {
	t.Helper()
	_, rest, ok := strings.Cut(page, dataTag)
	text, _, ok2 := strings.Cut(rest, "</script>")
	d := new(pageData)
	must.True(t, ok && ok2, "no data block")
	must.Do(t, json.Unmarshal([]byte(text), d))
	return d
}

// symbolOf returns the symbol of a node.
func (d *pageData) symbolOf(node int) int32 {
	if s := d.Nodes[node-1]; s >= 0 {
		return s
	}
	return d.Runs[-1-d.Nodes[node-1]][0]
}

// foldedOf rebuilds collapsed stacks from a page's data.
func foldedOf(d *pageData) map[string]int64 {
	names := []string{""}
	for i := range d.Nodes {
		s := d.symbolOf(i + 1)
		name := d.Symbols[s][0].(string)
		if int(d.Symbols[s][2].(float64))&page.DoubtfulBit != 0 {
			name += " [doubtful]"
		}
		if up := names[i+1-int(d.Parents[i])]; up != "" {
			name = up + ";" + name
		}
		names = append(names, name)
	}
	out := map[string]int64{}
	for _, row := range d.Stacks {
		for i := 0; i < len(row); i += 1 + len(d.Metrics) {
			out[names[row[i]]] += row[i+1]
		}
	}
	return out
}

func TestPageData(t *testing.T) {
	for name, p := range map[string]*Profile{"demo": handMade(), "events": withEvents(),
		"large": large(300, 40), "empty": {}} {
		t.Run(name, func(t *testing.T) {
			d := dataOf(t, string(written(t, WriteHTML, p)))
			v := newView(p)
			want := map[string]int64{}
			for i := range v.paths {
				want[v.fold(&v.paths[i])] += v.paths[i].values[valueSamples]
			}
			got := foldedOf(d)
			expect.Equal(t, len(got), len(want), "stacks")
			for k, n := range want {
				expect.Equal(t, got[k], n, "%q", k)
			}
			for i, up := range d.Parents {
				must.True(t, up >= 1 && int(up) <= i+1, "node %d: parent %d back", i+1, up)
			}
		})
	}
}

// A page is page.html with the title, the data, every script, and the style at their places.
func TestPageParts(t *testing.T) {
	text := string(written(t, WriteHTML, handMade()))
	_, data, _ := strings.Cut(text, dataTag)
	data, _, _ = strings.Cut(data, "</script>")
	text = strings.Replace(text, data, "{{data}}", 1)
	text = strings.ReplaceAll(text, pageTitle(handMade()), "{{title}}")
	scripts, _ := filepath.Glob("page/*.js")
	for _, part := range append(scripts, "page/page.css") {
		b, err := os.ReadFile(part)
		expect.True(t, err == nil && strings.Count(text, string(b)) == 1,
			"%s stands in the page %d times: %v", part, strings.Count(text, string(b)), err)
		text = strings.Replace(text, string(b), "", 1)
	}
	frame, _ := os.ReadFile("page/page.html")
	want := strings.NewReplacer("{{css}}", "", "{{js}}", "").Replace(string(frame))
	expect.True(t, text == want, "without its parts the page is\n%s\nand not page.html:\n%s", text, want)
}

func TestPageIsSelfContained(t *testing.T) {
	page := string(written(t, WriteHTML, hostile()))
	expect.Equal(t, strings.Count(page, "<script"), 2, "script elements")
	expect.Equal(t, strings.Count(page, "</script"), 2, "ends of script elements")
	expect.Equal(t, regexp.MustCompile(`(?i)https?://|src=|@import|url\(`).FindString(page), "",
		"the page refers to something outside")
	d := dataOf(t, page)
	expect.Equal[any](t, d.Symbols[0][0], hostileNames[0], "name")
	expect.True(t, !strings.Contains(page, "alert(1)</"), "a name got out of the data")
}
