package outside

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/probe"
)

// Where the kernel lets nobody read the target (a container without SYS_PTRACE whose filter
// refuses the calls, Yama's ptrace_scope 2 and 3, a program with capabilities that we
// lack) the probe in it does. It tells what is mapped too, if that is refused as well.

// store is where a target's memory is read.
type store interface {
	live.Memory
	Close() error
}

// askedMemory is memory that the probe reads.
type askedMemory struct {
	*probe.Memory
	choice *readers
}

// openAsked is a target whose memory the probe reads.
func openAsked(pid int, file *probe.File) (*target, *askedMemory) {
	c := &readers{pid: strconv.Itoa(pid), sig: file.Signals}
	mem := &askedMemory{file.Memory(c), c}
	loader := live.NewLoader(pid)
	loader.Memory = mem
	t := newTarget(pid, file.Arch(), mem, loader)
	if n := live.NumbersOf(pid); n.Foreign() {
		t.threads.numbers = n
	}
	t.mapsOf = mem.maps
	return t, mem
}

// openEither opens a target by the kernel's leave or by the probe's help.
func openEither(pid int, file *probe.File) (*target, store, *askedMemory) {
	if t, mem, err := openTarget(pid, file.Arch()); err == nil {
		return t, mem, nil
	}
	t, mem := openAsked(pid, file)
	return t, mem, mem
}

// maps are the target's mappings, by the kernel's word or by the probe's.
func (m *askedMemory) maps(pid int) ([]live.Mapping, error) {
	maps, err := live.Maps(pid)
	if err == nil {
		return maps, nil
	}
	text, a := m.Mappings()
	if a != probe.Whole {
		return nil, errors.New("the probe does not tell its mappings")
	}
	return live.ParseMaps(bytes.NewReader(text))
}

// renew has what is read from now on be what is there now.
func (e *Engine) renew() {
	if e.asked != nil {
		e.asked.Renew()
	}
}

// writeReads sends what the probe has read.
func (e *Engine) writeReads() {
	if e.asked == nil {
		return
	}
	s := &e.asked.Stats
	for key, value := range map[string]uint64{"probe_reads": s.Reads, "probe_reads_held": s.Held, "probe_reads_lost": s.Unanswered,
		"probe_read_signals": s.Asked, "probe_read_ns": s.Nanos, "probe_read_copy_ns": s.Copying} {
		e.s.Out.Stats(key, value)
	}
}

// answers reports whether a thread runs since we have it read: what it stands in is seen
// now and then.
func (e *Engine) answers(t *task) bool {
	if e.asked == nil || !e.asked.choice.first(t.tid) {
		return false
	}
	t.due = max(t.due, t.visited+int64(readerPoll))
	return true
}

const readerPoll = time.Second

// unseen samples a thread of which the kernel does not tell where it stands: one that runs
// by its timer, any other by a signal, once each time that it has run.
func (e *Engine) unseen(t *task) {
	if b, err := e.kernel.read(t.tid, "stat"); err != nil {
		return
	} else if stateIn(b) == 'R' {
		e.arm(t)
		return
	}
	if t.unarmed > armAfter*uint64(e.period) {
		e.arm(t)
	}
	if e.cfg.NoWall || t.asked && !e.file.Answered(t.slot) {
		return
	}
	t.asked = e.ask(t, probe.OpSample) == sent
}

// stateIn is the letter behind a thread's name in its stat; the name may have anything in it.
func stateIn(stat []byte) byte {
	if i := bytes.LastIndexByte(stat, ')'); i >= 0 && i+2 < len(stat) {
		return stat[i+2]
	}
	return 0
}

// refusesUnread is Refuses of a process whose memory only the probe can read: its runtime's
// file tells whether its structures are known. Where not even that is seen, nothing is
// known before the probe is in it.
func refusesUnread(pid int) string {
	maps, err := live.Maps(pid)
	if err != nil {
		return ""
	}
	table := live.NewLoader(pid).Table(maps)
	for i := range table.Len() {
		if m := table.At(i); m.ELF != nil && contract.Holds(m.ELF) {
			return ""
		}
	}
	return "its memory cannot be read, and the structures of its runtime are not known (those of .NET 8 and later are)"
}
