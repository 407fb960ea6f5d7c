package target

import (
	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
)

// Open opens the memory of a process of architecture a.
func Open(pid int, a context.Arch) (*Process, *live.Process, error) {
	mem, err := live.OpenProcess(pid)
	if err != nil {
		return nil, nil, err
	}
	t := New(pid, a, mem, live.NewLoader(pid))
	if t.Guest = live.NewGuest(pid); t.Guest != nil {
		t.MapsOf = func(int) ([]live.Mapping, error) { return t.Guest.Maps() }
	} else {
		view := live.NewView(pid)
		t.View, t.loader.Files, t.close = view, view.Files, view.Close
	}
	if n := live.NumbersOf(pid); n.Foreign() {
		t.Threads.Numbers = n
	}
	return t, mem, nil
}

// Refuses returns why a process cannot be sampled from outside, "" if it can: the structures of its runtime
// are not known, or its memory may not be read.
func Refuses(pid int) string {
	t, mem, err := Open(pid, context.Host())
	if err != nil {
		return refusesUnread(pid)
	}
	defer mem.Close()
	defer t.Close()
	t.Refresh(pid)
	switch {
	case t.Tables != nil:
		return ""
	case t.Why != "":
		return t.Why
	case t.Table == nil:
		return "its mappings cannot be read"
	}
	return "the structures of its runtime are not known (those of .NET 8 and later are)"
}

// Unproven returns why the managed code of a process cannot be read. It returns "" if it can, or if there is
// no runtime with known structures. It tries for 200 ms.
func Unproven(pid int) string {
	t, mem, err := Open(pid, context.Host())
	if err != nil {
		return ""
	}
	defer mem.Close()
	defer t.Close()
	if t.Refresh(pid); t.Tables == nil {
		return ""
	}
	t.VerifySoon()
	return t.UnprovenWhy()
}

// refusesUnread is Refuses for a process whose memory only the probe can read. The runtime's file shows
// whether its structures are known. If that is not accessible either, nothing is known before the probe is
// loaded.
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
