package export

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// chromeEvent is an event as the description of the format has it.
type chromeEvent struct {
	Name     string                     `json:"name"`
	Category string                     `json:"cat"`
	Phase    string                     `json:"ph"`
	Start    json.Number                `json:"ts"`
	Duration json.Number                `json:"dur"`
	PID      *int                       `json:"pid"`
	TID      *int                       `json:"tid"`
	Args     map[string]json.RawMessage `json:"args"`
}

// nanos reads a time in microseconds, exactly.
func nanos(t *testing.T, n json.Number) int64 {
	t.Helper()
	whole, part, ok := strings.Cut(string(n), ".")
	var ns int64
	_, err := fmt.Sscan(whole+part, &ns)
	must.True(t, err == nil && ok && len(part) == 3 && ns >= 0, "time %q", n)
	return ns
}

// readChrome reads a file, checks what the description of the format says of every event, and
// returns the slices as track: name start+length, in milliseconds.
func readChrome(t *testing.T, b []byte) (slices []string) {
	t.Helper()
	var f struct {
		Events []chromeEvent `json:"traceEvents"`
		Unit   string        `json:"displayTimeUnit"`
	}
	must.Do(t, json.Unmarshal(b, &f))
	names, open, last := map[int]string{}, map[int][]int64{}, map[int]int64{}
	for i, e := range f.Events {
		switch {
		case e.PID == nil || e.TID == nil || *e.PID <= 0 || e.Name == "" || e.Category == "":
			t.Fatalf("event %d lacks a field: %+v", i, e)
		case e.Phase == "M" && e.Name == "thread_name":
			if err := json.Unmarshal(e.Args["name"], new(string)); err != nil || names[*e.TID] != "" {
				t.Fatalf("event %d: %v, thread %d is named twice", i, err, *e.TID)
			}
			names[*e.TID] = string(e.Args["name"])
		case e.Phase == "M":
		case e.Phase == "X":
			from, length, stack := nanos(t, e.Start), nanos(t, e.Duration), open[*e.TID]
			for len(stack) > 0 && stack[len(stack)-1] <= from {
				stack = stack[:len(stack)-1]
			}
			if len(stack) > 0 && from+length > stack[len(stack)-1] || from < last[*e.TID] ||
				names[*e.TID] == "" {
				t.Fatalf("event %d does not nest in %d, is not sorted, or is of no thread: %+v", i, stack, e)
			}
			open[*e.TID], last[*e.TID] = append(stack, from+length), from
			slices = append(slices, fmt.Sprintf("%s: %s %v+%v", names[*e.TID], e.Name,
				float64(from)/1e6, float64(length)/1e6))
		default:
			t.Fatalf("event %d of phase %q", i, e.Phase)
		}
	}
	expect.Equal(t, f.Unit, "ms", "unit")
	return slices
}

// waited is timed with waits that cross the bounds of samples, of each other, and of the recording.
func waited() *Profile {
	p := timed()
	n := len(p.Stacks)
	p.Frames = append(p.Frames,
		Frame{Name: "System.Threading.Monitor.Wait", Class: ClassManaged, ModuleIndex: -1},
		Frame{Name: "App.Take", Class: ClassManaged, ModuleIndex: -1})
	p.Stacks[1].Frames = []int32{2, 3, 4}
	p.Stacks = append(p.Stacks,
		Stack{Thread: 1, Frames: []int32{2, 3, 4}, Count: 3, Complete: true,
			Event: EventWait, Type: "a lock"},
		Stack{Thread: 0, Count: 1, Complete: true, Event: EventPause, Type: "gen 2 GC"},
		Stack{Thread: 1, Frames: []int32{2}, Count: 1, Event: EventLock, Owner: 1, Complete: true})
	at := func(ms int) time.Time { return p.Start.Add(time.Duration(ms) * time.Millisecond) }
	p.Waits = []Wait{{n, at(-5), 1e7}, {n, at(150), 1e8}, {n + 2, at(240), 1e8}, {n, at(700), 1000},
		{n + 1, at(300).Add(123), 1e8}}
	p.Samples = append(p.Samples, Sample{Stack: 1, At: at(1000).UnixNano(), Wall: 1e8})
	p.Stats.Events = []EventStats{{Event: EventWait}, {Event: EventPause}, {Event: EventLock}}
	return p
}

// Threads run and wait when their samples and waits say so, and GC pauses are a track. Slices nest.
func TestChrome(t *testing.T) {
	got := readChrome(t, written(t, WriteChrome, waited()))
	running := func(s string) bool { return strings.Contains(s, ": running ") }
	expect.Equal(t, len(got), 25+11, "slices")
	want := []string{`"GC pauses": gen 2 GC 300.000123+100`, `"b (2)": wait in App.Take 0+5`,
		`"b (2)": wait in App.Take 150+100`, `"b (2)": waiting in App.Take 200+40`,
		`"b (2)": lock in wait 240+10`, `"b (2)": waiting in App.Take 240+10`,
		`"b (2)": waiting in App.Take 250+450`, `"b (2)": wait in App.Take 700+0.001`,
		`"b (2)": waiting in App.Take 700+0.001`, `"b (2)": waiting in App.Take 700.001+99.999`,
		`"b (2)": waiting in App.Take 900+100`}
	cmptest.Same(t, want, slices.DeleteFunc(slices.Clone(got), running))
	first := slices.IndexFunc(got, running)
	expect.True(t, got[first] == `"a (1)": running 10+10`, "%s", got[first])
	for name, p := range map[string]*Profile{"demo": handMade(), "events": withEvents(), "hostile": hostile(),
		"empty": {}, "same thread twice": {Threads: []Thread{{ID: 7}, {ID: 7}, {}}}} {
		got := readChrome(t, written(t, WriteChrome, p))
		expect.True(t, len(got) == len(p.Waits), "%s: %d slices of %d waits", name, len(got), len(p.Waits))
	}
}

// Another reader of the format finds the same slices, each below its wait.
func TestChromeOtherReader(t *testing.T) {
	needs.Command(t, "node")
	reader := filepath.Dir(needs.File(t, ".cache", "trace-model", "package", "package.json"))
	events := filepath.Dir(needs.File(t, ".cache", "trace-event", "package", "package.json"))
	b := written(t, WriteChrome, waited())
	file := filepath.Join(t.TempDir(), "a.trace.json")
	must.Do(t, os.WriteFile(file, b, 0o600))
	const script = `const [file, reader, events] = process.argv.slice(1), module1 = require('module'), load = module1._load;
module1._load = (name, ...rest) => name === 'debug' ? () => () => {} : load(name === '@tracerbench/trace-event' ? events : name, ...rest);
const model = require(reader).buildModel(JSON.parse(require('fs').readFileSync(file)));
for (const p of model.processes) for (const t of [...p.threads].sort((a, b) => a.sortIndex - b.sortIndex)) for (const e of t.events.filter(e => e.isComplete()))
  console.log(JSON.stringify(t.name) + ': ' + e.name + ' ' + Number((e.start / 1000).toFixed(6)) + '+' + Number((e.duration / 1000).toFixed(6)) + (e.parent ? ' below ' + e.parent.name : ''));`
	out := must.Run(t, exec.Command("node", "-e", script, file, reader, events))
	lines := strings.Split(strings.TrimSpace(out), "\n")
	below := 0
	for i, line := range lines {
		if at := strings.Index(line, " below "); at >= 0 {
			lines[i] = line[:at]
			below++
		}
	}
	d := cmptest.Diff(readChrome(t, b), lines)
	expect.True(t, d == "" && below == 4, "%d slices are below others\n%s", below, d)
}
