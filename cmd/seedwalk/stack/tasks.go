package stack

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/clr/tasks"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/report/hang"
	"github.com/seedwalk/seedwalk/sample/paused"
)

const TasksHelp = `Usage: seedwalk tasks [flags] PID
       seedwalk tasks [flags] --core FILE

Lists the pending async operations of a .NET process as chains: what is awaited, then each async
method that awaits the line above it. Equal chains are shown once, with how many there are, the
most frequent first. A thread that blocks on a task (Wait, Result, GetAwaiter().GetResult()) ends
its chain. seedwalk reads the heap while the process runs; it stops each thread once, for as long
as it takes to copy the stack. .NET 8, 9, and 10.

  --method TEXT   only chains with a method whose name contains TEXT
  --type TEXT     only chains that wait for something whose name contains TEXT
  --limit N       show at most N chains (default 100; 0: all)
  --json          one line of JSON with all of them
  --core FILE     a core of the kernel, of gcore, or of createdump that has the managed heap
  --modules DIR   with --core: where to find the files that the process had mapped; may be repeated

docs/tasks.md explains the output, and what is not seen.

Examples:
  seedwalk tasks 4711
  seedwalk tasks --method OrderService 4711
  seedwalk tasks --json --core core.4711

Exit code: 0 success; 1 some of it could not be read (a collection, a thread that could not be
stopped, a limit, or a core that lacks memory), the rest is shown; 2 wrong usage; 3 nothing could be
read.
`

// tasksFlags are the flags of tasks.
type tasksFlags struct {
	stackFlags
	method, typ string
	limit       int
}

// tasksView is the output of tasks. It is printed as it is by --json, which docs/json.md describes.
type tasksView struct {
	Format      string       `json:"format"`
	Version     int          `json:"version"`
	Source      string       `json:"source"` // process or core
	PID         int          `json:"pid"`
	Name        string       `json:"name,omitempty"`
	Crash       *crash       `json:"crash,omitempty"` // of a core
	Pending     int          `json:"pending"`
	Chains      int          `json:"chains"`
	Queued      int          `json:"pool_queue"` // work items
	Objects     int          `json:"heap_objects"`
	Bytes       uint64       `json:"heap_bytes"`
	Lost        uint64       `json:"heap_bytes_without_objects"`
	Unconfirmed int          `json:"unconfirmed"`
	Changed     int          `json:"changed"`
	Groups      []tasksGroup `json:"groups"`
	Problems    []string     `json:"problems,omitempty"`
}

type tasksGroup struct {
	Count   int      `json:"count"`
	Chain   []string `json:"chain"`
	State   string   `json:"state,omitempty"`
	Blocks  bool     `json:"blocks_threads,omitempty"`
	Limited bool     `json:"limited,omitempty"`
	Threads []uint32 `json:"threads,omitempty"`
	Task    string   `json:"task"`
}

func Tasks(args []string) int {
	f := tasksFlags{limit: 100}
	set := flag.NewFlagSet("tasks", flag.ContinueOnError)
	set.StringVar(&f.core, "core", "", "")
	set.Var(&f.modules, "modules", "")
	set.BoolVar(&f.json, "json", false, "")
	set.StringVar(&f.method, "method", "", "")
	set.StringVar(&f.typ, "type", "", "")
	set.IntVar(&f.limit, "limit", f.limit, "")
	words, code, done := cli.ParseMixed(set, TasksHelp, args)
	if done {
		return code
	}
	err := f.check(words)
	if err == nil && f.limit < 0 {
		err = fmt.Errorf("--limit %d is below 0", f.limit)
	}
	if err != nil {
		return cli.Usage("tasks", err)
	}
	v, err := f.read()
	if err == nil {
		err = v.write(cli.Stdout, &f)
	}
	if err != nil {
		return cli.Fail("tasks", cli.ExitUnreadable, err)
	}
	return cli.Problems("tasks", v.Problems)
}

// read reads the chains of a process or a core.
func (f *tasksFlags) read() (*tasksView, error) {
	var r *tasks.Result
	var why error
	f.use = func(p *paused.Process) { r, why = p.Tasks() }
	s, err := f.snapshot()
	switch {
	case err != nil:
		return nil, err
	case why != nil && len(s.damage) > 0:
		return nil, fmt.Errorf("the managed heap of %s %d: %w; %s", s.Source, s.PID, why,
			strings.Join(s.damage, "; "))
	case why != nil:
		return nil, fmt.Errorf("the managed heap of %s %d: %w%s", s.Source, s.PID, why, f.remedy())
	}
	return f.view(s, r), nil
}

// view returns the part of r that is shown, with the problems of s and r.
func (f *tasksFlags) view(s *stackView, r *tasks.Result) *tasksView {
	v := &tasksView{Format: "seedwalk-tasks", Version: 1, Source: s.Source, PID: s.PID, Name: s.Name,
		Crash:   s.Crash,
		Pending: r.Pending, Queued: r.Queued, Objects: r.Heap.Objects,
		Bytes: r.Heap.Bytes, Lost: r.Heap.Lost, Unconfirmed: r.Unconfirmed,
		Changed: r.Changed, Groups: []tasksGroup{}}
	for i := range r.Groups {
		g := &r.Groups[i]
		if f.wants(g) {
			v.Chains += g.Count
			v.Groups = append(v.Groups,
				tasksGroup{g.Count, g.Chain, g.State, g.Blocks, g.Limited,
					g.Threads, fmt.Sprintf("%#x", g.Task)})
		}
	}
	v.Problems = append(s.Problems, problemsOf(r)...)
	if lost := r.Heap.Lost; lost > r.Heap.Bytes/tolerated {
		why := ""
		if r.Moved {
			why = "a collection moved objects during every reading: "
		}
		v.Problems = append(v.Problems,
			fmt.Sprintf("%sno objects were found in %s of %s of heap: chains may be missing%s", why,
				sizeOf(lost), sizeOf(r.Heap.Bytes), f.remedy()))
	}
	return v
}

// Parts of the heap without objects are reported as a problem if they are more than 1/tolerated of its bytes.
// Some are normal, between two allocations.
const tolerated = 100

// remedy names the kinds of cores that contain the heap.
func (f *tasksFlags) remedy() string {
	if f.core == "" {
		return ""
	}
	return "; a core of createdump --withheap or --full, or of gcore, has all of it"
}

// wants reports whether a chain passes --method and --type.
func (f *tasksFlags) wants(g *tasks.Group) bool {
	has := func(name string) bool { return strings.Contains(name, f.method) }
	return slices.ContainsFunc(g.Chain, has) && strings.Contains(g.Chain[0], f.typ)
}

// problemsOf lists the parts of the heap that could not be read.
func problemsOf(r *tasks.Result) (out []string) {
	switch {
	case r.Busy:
		out = append(out, "a garbage collection was running: chains may be missing")
	case r.Moved && r.Changed > 0:
		out = append(out, fmt.Sprintf("a collection moved objects during every reading: %s could not be followed and may be missing; try again", cli.CountOf(r.Changed, "continuation")))
	}
	if r.Unread > 0 {
		out = append(out, fmt.Sprintf("%s skipped: beyond the read limit", cli.CountOf(r.Unread, "task")))
	}
	if r.Cut {
		out = append(out, "a limit was reached: chains are missing or end early")
	}
	if r.ArraysCut {
		out = append(out, "arrays too large: some chains end early")
	}
	return out
}

func (v *tasksView) write(w io.Writer, f *tasksFlags) error {
	if f.json {
		return json.NewEncoder(w).Encode(v)
	}
	b := bufio.NewWriter(w)
	writeSource(b, v.Source, v.PID, v.Name)
	fmt.Fprintf(b, ", heap of %s, %s", sizeOf(v.Bytes), cli.CountOf(v.Chains, "pending chain"))
	if v.Queued > 0 {
		fmt.Fprintf(b, ", %s in the queue of the thread pool", cli.CountOf(v.Queued, "work item"))
	}
	b.WriteByte('\n')
	v.Crash.write(b)
	for i := range v.Groups {
		if f.limit > 0 && i == f.limit {
			fmt.Fprintf(b, "\n%s more; --limit 0 shows all\n",
				cli.CountOf(len(v.Groups)-i, "different chain"))
			break
		}
		v.Groups[i].write(b)
	}
	return b.Flush()
}

func (g *tasksGroup) write(b *bufio.Writer) {
	fmt.Fprintf(b, "\n%s, first task %s", cli.CountOf(g.Count, "chain"), g.Task)
	if g.State != "" {
		fmt.Fprintf(b, ", %s", g.State)
	}
	if len(g.Threads) > 0 && !g.Blocks {
		fmt.Fprintf(b, " on %s", threadsOf(g.Threads))
	}
	b.WriteByte('\n')
	for _, name := range hang.Fold(g.Chain) {
		fmt.Fprintf(b, "  %s\n", name)
	}
	until := ""
	if g.Limited {
		until = ", with a time limit"
	}
	switch {
	case g.Blocks && len(g.Threads) > 0:
		fmt.Fprintf(b, "  [%s blocked%s]\n", threadsOf(g.Threads), until)
	case g.Blocks:
		fmt.Fprintf(b, "  [a blocked thread%s]\n", until)
	}
}

// threadsOf lists some of the threads.
func threadsOf(tids []uint32) string {
	const shown = 16
	if len(tids) == 1 {
		return fmt.Sprintf("thread %d", tids[0])
	}
	list := strings.ReplaceAll(strings.Trim(fmt.Sprint(tids[:min(shown, len(tids))]), "[]"), " ", ", ")
	if n := len(tids) - shown; n > 0 {
		list += fmt.Sprintf(" and %d more", n)
	}
	return "threads " + list
}

// sizeOf formats a number of bytes.
func sizeOf(n uint64) string {
	if n < 1e6 {
		return fmt.Sprintf("%d KB", (n+999)/1000)
	}
	return fmt.Sprintf("%.0f MB", float64(n)/1e6)
}
