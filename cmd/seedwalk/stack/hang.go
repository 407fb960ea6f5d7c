package stack

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/clr/tasks"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/internal/procstat"
	"github.com/seedwalk/seedwalk/report/hang"
	"github.com/seedwalk/seedwalk/sample/paused"
	"github.com/seedwalk/seedwalk/unwind"
)

const HangHelp = `Usage: seedwalk hang [flags] PID
       seedwalk hang [flags] --core FILE

Explains why a process makes no progress: the verdict first, then which thread waits for which.
It takes two snapshots of all stacks, as seedwalk stack does. A thread that changed in between is
running. The process need not cooperate, so it may be completely blocked. A third snapshot, after
four times as long, must confirm each hang except stopped and deadlock.

  --wait DURATION  time between the first two snapshots (default 1s); up to 0.5 s is added
  --json           one line of JSON with verdicts, threads, and their waits
  --core FILE      a core of the kernel, of gcore, or of createdump: one snapshot
  --modules DIR    with --core: where to find the files that the process had mapped; may be repeated

Verdicts:
  stopped      a debugger or a signal has stopped the process
  deadlock     a circle: threads wait for each other's locks, tasks, static constructors, or ends
  abandoned    threads wait for a lock of managed code whose owner ended without releasing it
  collection   a garbage collection waits for a thread that does not stop for it
  held-lock    threads wait for a lock whose owner waits for something else
  starvation   all workers of the thread pool block, too many on tasks or while work is queued
  convoy       many threads queue for one lock that no other verdict explains
  waiting      no thread runs, and no circle of locks was found; the waits are listed
  nothing      threads run, and no circle of locks was found; the waits are listed

docs/hang.md explains each verdict, its usual cause, and the remedy.

Examples:
  seedwalk hang 4711
  seedwalk hang --wait 5s 4711
  seedwalk hang --core core.4711

Exit code: 0 nothing hangs; 1 something hangs; 2 wrong usage; 3 nothing could be read.
`

// hangReport is the JSON of hang.
type hangReport struct {
	Format   string         `json:"format"`
	Version  int            `json:"version"`
	Source   string         `json:"source"` // process or core
	PID      int            `json:"pid"`
	Name     string         `json:"name,omitempty"`
	Crash    *crash         `json:"crash,omitempty"` // of a core
	Verdicts []hang.Verdict `json:"verdicts"`
	Threads  []hangThread   `json:"threads"`
	Problems []string       `json:"problems,omitempty"`
}

type hangThread struct {
	TID   uint32     `json:"tid"`
	Name  string     `json:"name,omitempty"`
	Waits string     `json:"waits_for"`
	Lock  *stackLock `json:"lock,omitempty"`
	Where string     `json:"where,omitempty"`
	Ran   bool       `json:"ran"` // between the last two snapshots
}

func Hang(args []string) int {
	var f stackFlags
	wait := time.Second
	set := flag.NewFlagSet("hang", flag.ContinueOnError)
	set.StringVar(&f.core, "core", "", "")
	set.Var(&f.modules, "modules", "")
	set.BoolVar(&f.json, "json", false, "")
	set.DurationVar(&wait, "wait", wait, "")
	words, code, done := cli.ParseMixed(set, HangHelp, args)
	if done {
		return code
	}
	err := f.check(words)
	if err == nil && (wait < 10*time.Millisecond || wait > time.Hour) {
		err = fmt.Errorf("--wait %v is not between 10ms and 1h", wait)
	}
	if err != nil {
		return cli.Usage("hang", err)
	}
	r, err := f.judge(wait)
	if err == nil {
		err = r.write(cli.Stdout, f.json)
	}
	if err != nil {
		return cli.Fail("hang", cli.ExitUnreadable, err)
	}
	cli.Problems("hang", r.Problems)
	if slices.ContainsFunc(r.Verdicts, func(v hang.Verdict) bool { return v.Hang }) {
		return cli.ExitWrong
	}
	return cli.ExitOK
}

// confirms is how many times longer the pause before the third snapshot is than the pause before the second.
const confirms = 4

// judge takes one snapshot of a core, or two of a process. If time can refute the hang that they show, a
// third snapshot decides.
func (f *stackFlags) judge(wait time.Duration) (*hangReport, error) {
	if f.core != "" {
		v, pending, err := f.withTasks()
		if err != nil {
			return nil, err
		}
		p := processOf(v, pending)
		p.Once = true
		return reportOf(v, p), nil
	}
	first, err := f.ofProcess()
	// A debugger may have stopped the process: the kernel allows no second tracer.
	if by := stoppedBy(f.pid); err != nil && procstat.Status(f.pid)["TracerPid"] != "0" && by != "" {
		v := newStackView("process", f.pid, "")
		v.Problems = []string{err.Error()}
		return reportOf(v, &hang.Process{Stopped: by}), nil
	}
	if err != nil {
		return nil, err
	}
	r, second, err := f.compare(first, wait)
	if err == nil && slices.ContainsFunc(r.Verdicts, func(v hang.Verdict) bool { return v.Refutable() }) {
		r, _, err = f.compare(second, confirms*wait)
	}
	return r, err
}

// compare takes another snapshot of a process after a pause, and judges what has changed since the given one.
func (f *stackFlags) compare(first *stackView, wait time.Duration) (*hangReport, *stackView, error) {
	stopped := stoppedBy(f.pid)
	if stopped == "" {
		settle(f.pid, maxSettle)
	}
	before := runTimes(f.pid)
	time.Sleep(wait)
	after := runTimes(f.pid)
	second, pending, err := f.withTasks()
	if err != nil {
		return nil, nil, fmt.Errorf("at the next snapshot: %w", err)
	}
	p := processOf(second, pending)
	p.Stopped, p.Processors = stopped, processorsOf(f.pid)
	then := map[uint32]*stackThread{}
	for i := range first.Threads {
		then[first.Threads[i].TID] = &first.Threads[i]
	}
	for i := range p.Threads {
		t, now := &p.Threads[i], &second.Threads[i]
		old := then[t.TID]
		t.New = old == nil
		t.Moved = t.New || !old.equals(now)
		t.Ran = t.Moved || before[t.TID] != after[t.TID]
		t.Cooperative = t.Cooperative && old != nil && old.cooperative
		t.Suspends = t.Suspends && old != nil && old.suspends
	}
	return reportOf(second, p), second, nil
}

// withTasks takes a snapshot and reads the pending async operations. pending is empty if they cannot be read.
func (f *stackFlags) withTasks() (v *stackView, pending *tasks.Result, err error) {
	pending = &tasks.Result{}
	f.use = func(p *paused.Process) {
		if r, err := p.Tasks(); err == nil {
			pending = r
		}
	}
	v, err = f.snapshot()
	return v, pending, err
}

func hangChains(groups []tasks.Group) (out []hang.Chain) {
	for i := range groups {
		g := &groups[i]
		c := hang.Chain{Count: g.Count, Names: g.Chain, Queued: g.State == tasks.Queued,
			Circle: g.State == tasks.Circle, Limited: g.Limited}
		if g.Blocks {
			c.Blocked = g.Threads
		}
		out = append(out, c)
	}
	return out
}

// equals reports whether a thread has the same stack and lock as in another snapshot.
func (t *stackThread) equals(o *stackThread) bool {
	return (t.Lock == nil) == (o.Lock == nil) && (t.Lock == nil || *t.Lock == *o.Lock) &&
		slices.EqualFunc(t.Frames, o.Frames,
			func(a, b stackFrame) bool { return a.IP == b.IP && a.SP == b.SP })
}

// blocks maps a paused.Block to a wait of package hang.
var blocks = [...]hang.Wait{paused.ForInput: hang.Input, paused.ForEvent: hang.Event,
	paused.ForTime: hang.Sleep, paused.ForChild: hang.Child}

// processOf converts stacks and pending async operations to the input of package hang's rules.
func processOf(v *stackView, pending *tasks.Result) *hang.Process {
	p := &hang.Process{Chains: hangChains(pending.Groups),
		Queued: pending.Queued, NoneQueued: pending.QueueRead && pending.Queued == 0}
	for i := range v.Threads {
		t := &v.Threads[i]
		byToken := t.Lock == nil && slices.Contains(pending.Limited, t.TID) // a token ends no wait for a lock
		h := hang.Thread{TID: t.TID, Name: t.Name, Incomplete: !t.Complete, Cooperative: t.cooperative,
			Suspends: t.suspends, Blocks: blocks[t.block], Limited: t.limited || byToken,
			Joins: t.Joins}
		if t.Lock != nil {
			h.Lock = hang.Lock{Kind: t.Lock.Kind, At: t.Lock.At, Owner: t.Lock.Owner, Ended: t.Lock.Ended,
				Name: t.Lock.Name}
		}
		if v.Crash != nil && v.Crash.TID == t.TID {
			h.Signal = v.Crash.Signal
		}
		for _, e := range pending.Edges {
			if e.Waits == t.TID {
				h.Awaits = append(h.Awaits, hang.Await{Task: e.Name, At: fmt.Sprintf("%#x", e.Task),
					Runner: e.Runs, Limited: e.Limited})
			}
		}
		for _, f := range t.Frames {
			h.Frames = append(h.Frames,
				hang.Frame{Name: f.Name, Managed: f.Kind == unwind.KindManaged.String()})
		}
		p.Threads = append(p.Threads, h)
	}
	return p
}

func reportOf(v *stackView, p *hang.Process) *hangReport {
	r := &hangReport{Format: "seedwalk-hang", Version: 1, Source: v.Source, PID: v.PID, Name: v.Name,
		Crash: v.Crash, Verdicts: hang.Judge(p), Problems: v.Problems}
	for i := range p.Threads {
		t := &p.Threads[i]
		w, _ := t.Wait()
		r.Threads = append(r.Threads,
			hangThread{t.TID, t.Name, w.String(), v.Threads[i].Lock, t.Place(), t.Ran})
	}
	return r
}

func (r *hangReport) write(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	b := bufio.NewWriter(w)
	writeSource(b, r.Source, r.PID, r.Name)
	fmt.Fprintf(b, ", %s\n", cli.CountOf(len(r.Threads), "thread"))
	r.Crash.write(b)
	for _, v := range r.Verdicts {
		fmt.Fprintf(b, "\n%s: %s\n", v.Kind, v.Summary)
		for _, line := range v.Evidence {
			fmt.Fprintf(b, "  %s\n", line)
		}
		fmt.Fprintf(b, "  More: docs/hang.md#%s\n", v.Kind)
	}
	return b.Flush()
}

// runTimes returns the CPU time of each thread, in nanoseconds as text.
func runTimes(pid int) map[uint32]string {
	out := map[uint32]string{}
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, e := range entries {
		var tid uint32
		if _, err := fmt.Sscan(e.Name(), &tid); err != nil {
			continue
		}
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid)); err == nil {
			out[tid], _, _ = strings.Cut(string(b), " ")
		}
	}
	return out
}

// stoppedBy returns what has stopped a process, "" if it is not stopped.
func stoppedBy(pid int) string {
	status := procstat.Status(pid)
	state, tracer := status["State"], status["TracerPid"]
	switch {
	case strings.HasPrefix(state, "t") && tracer != "0":
		return "a debugger (process " + tracer + ")"
	case strings.HasPrefix(state, "t"), strings.HasPrefix(state, "T"):
		return "a signal; kill -CONT continues it"
	}
	return ""
}

// processorsOf counts the processors that a process may use.
func processorsOf(pid int) (n int) {
	for _, r := range strings.Split(procstat.Status(pid)["Cpus_allowed_list"], ",") {
		var from, to int
		switch k, _ := fmt.Sscanf(r, "%d-%d", &from, &to); k {
		case 1:
			n++
		case 2:
			n += max(to-from+1, 0)
		}
	}
	return n
}
