package stack

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/process/dump"
	"github.com/seedwalk/seedwalk/sample/paused"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/unwind"
)

// stackView is the output of `stack`. --json prints it; docs/json.md describes the fields.
type stackView struct {
	Format   string        `json:"format"`
	Version  int           `json:"version"`
	Source   string        `json:"source"` // process or core
	PID      int           `json:"pid"`
	Name     string        `json:"name,omitempty"`
	Runtime  bool          `json:"runtime"`           // a .NET runtime was found and could be read
	Copies   bool          `json:"copies,omitempty"`  // the stacks are copies that threads made earlier
	Dropped  uint64        `json:"dropped,omitempty"` // copies for which the file had no room
	Crash    *crash        `json:"crash,omitempty"`   // of a core
	Threads  []stackThread `json:"threads"`
	Cycles   [][]uint32    `json:"deadlocks,omitempty"` // cycles of threads: each waits for the next
	Problems []string      `json:"problems,omitempty"`

	damage []string // of the core's file, one line for each kind
}

type stackThread struct {
	TID      uint32       `json:"tid"`
	Name     string       `json:"name,omitempty"`
	Copy     *stackCopy   `json:"copy,omitempty"`
	Group    int          `json:"group"` // equal for threads with equal stacks
	Complete bool         `json:"complete"`
	Gap      string       `json:"gap,omitempty"`
	GapAt    string       `json:"gap_at,omitempty"`
	Lacks    string       `json:"lacks,omitempty"`   // the address of the memory that the core lacks
	HeldNs   int64        `json:"held_ns,omitempty"` // how long it was stopped
	Lock     *stackLock   `json:"waits_for,omitempty"`
	Joins    uint32       `json:"joins,omitempty"` // the thread whose end it waits for
	Frames   []stackFrame `json:"frames"`
	Callers  [][]string   `json:"async_callers,omitempty"` // chains that await what the thread runs
	Awaits   [][]string   `json:"awaits,omitempty"`        // chains that the thread blocks on

	gapIn       string // path of the module at GapAt, "" if no module is there
	cooperative bool   // paused.Stack.Cooperative
	suspends    bool   // it is stopping all others for a collection
	block       paused.Block
	limited     bool // paused.Stack.Limited
}

type stackFrame struct {
	Kind   string `json:"kind"`
	Name   string `json:"name,omitempty"`
	Module string `json:"module,omitempty"`
	Offset string `json:"offset,omitempty"` // in the module's own addresses
	File   string `json:"file,omitempty"`   // in the source
	Line   int    `json:"line,omitempty"`
	IP     string `json:"ip"`
	SP     string `json:"sp"`
	Trust  string `json:"trust"`
	Doubt  bool   `json:"doubtful,omitempty"`

	ip uint64
}

func newStackView(source string, pid int, name string) *stackView {
	return &stackView{Format: "seedwalk-stacks", Version: 1, Source: source, PID: pid,
		Name: name, Threads: []stackThread{}}
}

// serverGC reports whether a thread of the server's collector works on a collection. Between collections, it
// waits for an event. The runtime has no Thread for it.
func serverGC(name string, b paused.Block) bool {
	return strings.HasPrefix(name, ".NET Server GC") && b != paused.ForEvent
}

// add adds a thread with its stack.
func (v *stackView) add(p *paused.Process, s *paused.Stack, name string, held time.Duration) {
	t := stackThread{TID: s.TID, Name: name, Complete: s.Gap == merge.GapNone, HeldNs: held.Nanoseconds(),
		Frames: []stackFrame{}, cooperative: s.Cooperative, suspends: s.Suspends || serverGC(name, s.Block),
		block: s.Block, limited: s.Limited, Joins: s.Joins}
	if !t.Complete {
		t.Gap, t.GapAt = s.Gap.String(), fmt.Sprintf("%#x", s.At)
		if i := p.Modules().Find(s.At); i >= 0 {
			t.gapIn = p.Modules().At(i).Path
		}
		if s.EndsThere {
			t.Gap = notInCore
		}
	}
	if s.Lacks != 0 {
		t.Lacks = fmt.Sprintf("%#x", s.Lacks)
	}
	if s.Lock.Kind != paused.NoLock {
		t.Lock = &stackLock{Kind: s.Lock.Kind.String(), Owner: s.Lock.Owner, Ended: s.Lock.Ended,
			Name: s.Lock.Name}
		if s.Lock.At != 0 {
			t.Lock.At = fmt.Sprintf("%#x", s.Lock.At)
		}
	}
	for i := range s.Frames {
		f := &s.Frames[i]
		g := stackFrame{Kind: f.Kind.String(), Name: f.Name, Module: strings.TrimSuffix(f.Module, ".dll"),
			IP: fmt.Sprintf("%#x", f.IP), SP: fmt.Sprintf("%#x", f.SP),
			Trust: f.Trust.String(), Doubt: f.Trust.Doubtful(), ip: f.IP}
		g.File, g.Line = f.Source.File, f.Source.Line
		if f.Kind == unwind.KindNative && f.Module != "" {
			g.Offset = fmt.Sprintf("%#x", f.Offset)
		}
		t.Frames = append(t.Frames, g)
	}
	v.Threads = append(v.Threads, t)
}

// notInCore is the gap of a stack that needs memory that the core lacks.
const notInCore = "not-in-core"

// remedy says which cores lack nothing.
const remedy = "; use a core with all memory: of createdump --full, DOTNET_DbgMiniDumpType=4, or gcore"

// incomplete adds one problem for the stacks that need memory that the core lacks.
func (v *stackView) incomplete() {
	ended, doubtful, first := 0, 0, ""
	for i := range v.Threads {
		t := &v.Threads[i]
		switch {
		case t.Lacks == "":
			continue
		case t.Gap != notInCore:
			doubtful++
		default:
			ended++
		}
		if first == "" {
			first = t.Lacks
		}
	}
	if first == "" {
		return
	}
	v.Problems = append(v.Problems, fmt.Sprintf(
		"the core lacks memory: stacks that end early: %d, other stacks with doubtful frames: %d"+
			" (first missing address %s)%s", ended, doubtful, first, remedy))
}

// damaged adds a problem for each kind of damage in a core. A truncated core has many pieces of one kind, so
// the line has the first one and the number of the others.
func (v *stackView) damaged(core string, problems []error) {
	var kinds []dump.Why
	first, more := map[dump.Why]error{}, map[dump.Why]int{}
	for _, p := range problems {
		var e *dump.Error
		if !errors.As(p, &e) {
			continue
		}
		if first[e.Why] == nil {
			kinds, first[e.Why] = append(kinds, e.Why), p
		} else {
			more[e.Why]++
		}
	}
	for _, w := range kinds {
		line := core + ": " + first[w].Error()
		if n := more[w]; n > 0 {
			line += fmt.Sprintf(", and %d pieces more", n)
		}
		v.damage = append(v.damage, line+"; "+w.Remedy())
		v.Problems = append(v.Problems, line+"; the rest is shown; "+w.Remedy())
	}
}

// lacking adds the problems of modules that were not found, if a frame or a gap is in that module.
func (v *stackView) lacking(problems []string) {
	used := map[string]bool{}
	for i := range v.Threads {
		used[v.Threads[i].gapIn] = true
		for _, f := range v.Threads[i].Frames {
			used[f.Module] = true
		}
	}
	for _, p := range problems {
		if path, _, _ := strings.Cut(p, ": "); used[path] {
			v.Problems = append(v.Problems, p)
		}
	}
}

// finish groups the threads, finds deadlocks, and adds the problem if the runtime could not be read.
func (v *stackView) finish(p *paused.Process) {
	found, why := p.Runtime()
	if v.Runtime = found; why != "" {
		if v.Source == "core" {
			why += remedy
		}
		v.Problems = append(v.Problems, why)
	} else {
		v.incomplete()
	}
	v.Cycles = cycles(v.Threads)
	groups := map[string]int{}
	for i := range v.Threads {
		var key strings.Builder
		for _, f := range v.Threads[i].Frames {
			fmt.Fprintf(&key, "%x ", f.ip)
		}
		g, ok := groups[key.String()]
		if !ok {
			g = len(groups) + 1
			groups[key.String()] = g
		}
		v.Threads[i].Group = g
	}
}

func (v *stackView) managedOnly() {
	for i := range v.Threads {
		t := &v.Threads[i]
		t.Frames = slices.DeleteFunc(t.Frames,
			func(f stackFrame) bool { return f.Kind != unwind.KindManaged.String() })
	}
}

func (v *stackView) write(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(v)
	}
	b := bufio.NewWriter(w)
	v.head(b)
	for g := 1; ; g++ {
		var same []*stackThread
		for i := range v.Threads {
			if v.Threads[i].Group == g {
				same = append(same, &v.Threads[i])
			}
		}
		if same == nil {
			v.writeCycles(b)
			return b.Flush()
		}
		writeGroup(b, same)
		for _, t := range same {
			v.writeLock(b, t, len(same) > 1)
			t.writeAsync(b)
		}
	}
}

// writeSource begins the first line of a report: process or core, number, and name.
func writeSource(w io.Writer, source string, pid int, name string) {
	fmt.Fprintf(w, "%s %d", source, pid)
	if name != "" {
		fmt.Fprintf(w, " (%s)", name)
	}
}

func (v *stackView) head(w io.Writer) {
	writeSource(w, v.Source, v.PID, v.Name)
	fmt.Fprintf(w, ", %s", v.count(len(v.Threads)))
	if v.Runtime {
		fmt.Fprint(w, ", .NET")
	}
	var held []int64
	for i := range v.Threads {
		if h := v.Threads[i].HeldNs; h > 0 {
			held = append(held, h)
		}
	}
	if slices.Sort(held); len(held) > 0 {
		fmt.Fprintf(w, ", each stopped for %d µs (median), %d µs at most",
			held[len(held)/2]/1000, held[len(held)-1]/1000)
	}
	fmt.Fprintln(w)
	v.Crash.write(w)
}

// count returns a number of threads, or of copies.
func (v *stackView) count(n int) string {
	if v.Copies {
		return cli.CountOf(n, "copied stack")
	}
	return cli.CountOf(n, "thread")
}

// writeGroup writes a stack, and the threads or copies that have it.
func writeGroup(w io.Writer, same []*stackThread) {
	var who []string
	one, what := "thread", "thread"
	for _, t := range same {
		id := fmt.Sprint(t.TID)
		if t.Copy != nil {
			one, what = "copied stack: thread", "copied stack"
			id += fmt.Sprintf(" tag %d", t.Copy.Tag)
		}
		if t.Name != "" {
			id += fmt.Sprintf(" %q", t.Name)
		}
		who = append(who, id)
	}
	if len(same) > 1 {
		fmt.Fprintf(w, "\n%s: %s\n", cli.CountOf(len(same), what), strings.Join(who, ", "))
	} else {
		fmt.Fprintf(w, "\n%s %s\n", one, who[0])
	}
	t := same[0]
	var lines []string
	for i := range t.Frames {
		lines = append(lines, "  "+t.Frames[i].text())
	}
	writeLines(w, lines)
	if !t.Complete {
		in := ""
		if t.gapIn != "" {
			in = " in " + t.gapIn
		}
		if t.Lacks != "" {
			in += ", needs the memory at " + t.Lacks
		}
		fmt.Fprintf(w, "  (the rest is missing: %s at %s%s)\n", t.Gap, t.GapAt, in)
	}
}

// A block of lines that repeats, as in a recursion, is written once.
const (
	maxRepeated = 8  // most lines of a block
	minRepeated = 12 // least lines of a block and its repetitions
)

// writeLines writes lines. It writes a block that repeats once, with the number of repetitions.
func writeLines(w io.Writer, lines []string) {
	for len(lines) > 0 {
		n, times := repeated(lines)
		for _, l := range lines[:n] {
			fmt.Fprintln(w, l)
		}
		if times > 1 {
			what := "line above repeats"
			if n > 1 {
				what = fmt.Sprintf("%d lines above repeat", n)
			}
			more := fmt.Sprintf("%d more times", times-1)
			if times == 2 {
				more = "once more"
			}
			fmt.Fprintf(w, "  ... the %s %s\n", what, more)
		}
		lines = lines[n*times:]
	}
}

// repeated returns the length of the block at the start of lines, and how often the block occurs there in a
// row. It returns 1, 1 if nothing repeats.
func repeated(lines []string) (n, times int) {
	for n = 1; n <= maxRepeated; n++ {
		same := n
		for same < len(lines) && lines[same] == lines[same-n] {
			same++
		}
		if same >= max(minRepeated, 2*n) {
			return n, same / n
		}
	}
	return 1, 1
}

func (f *stackFrame) text() string {
	mark := ""
	if f.Doubt {
		mark = " (doubtful: " + f.Trust + ")"
	}
	switch {
	case f.Kind == unwind.KindNative.String() && f.Module == "":
		return f.IP + mark
	case f.Kind == unwind.KindNative.String() && f.Name == "":
		return fmt.Sprintf("%s+%s%s", filepath.Base(f.Module), f.Offset, mark)
	case f.Kind == unwind.KindNative.String():
		return fmt.Sprintf("%s  [%s]%s", f.Name, filepath.Base(f.Module), mark)
	case f.File != "" && f.Name != "":
		return fmt.Sprintf("%s  (%s)  %s:%d%s", f.Name, filepath.Base(f.Module), f.File, f.Line, mark)
	case f.Name == "":
		return fmt.Sprintf("%s %s%s", f.Kind, f.IP, mark)
	case f.Module == "":
		return f.Name + mark
	}
	return fmt.Sprintf("%s  (%s)%s", f.Name, filepath.Base(f.Module), mark)
}
