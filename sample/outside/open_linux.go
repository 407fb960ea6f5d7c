package outside

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
)

// openTarget opens the memory of a process of architecture a.
func openTarget(pid int, a context.Arch) (*target, *live.Process, error) {
	mem, err := live.OpenProcess(pid)
	if err != nil {
		return nil, nil, err
	}
	t := newTarget(pid, a, mem, live.NewLoader(pid))
	if t.guest = live.NewGuest(pid); t.guest != nil {
		t.mapsOf = func(int) ([]live.Mapping, error) { return t.guest.Maps() }
	} else {
		view := live.NewView(pid)
		t.view, t.loader.Files, t.close = view, view.Files, view.Close
	}
	if n := live.NumbersOf(pid); n.Foreign() {
		t.threads.numbers = n
	}
	return t, mem, nil
}

// Refuses reports why a process cannot be sampled from outside, "" if it can: the
// structures of its runtime are not known, or its memory may not be read.
func Refuses(pid int) string {
	t, mem, err := openTarget(pid, context.Host())
	if err != nil {
		return refusesUnread(pid)
	}
	defer mem.Close()
	defer t.shut()
	t.refresh(pid)
	switch {
	case t.tables != nil:
		return ""
	case t.why != "":
		return t.why
	case t.table == nil:
		return "its mappings cannot be read"
	}
	return "the structures of its runtime are not known (those of .NET 8 and later are)"
}

// Unproven reports why the managed code of a process cannot be read, "" if it can or there is
// no runtime whose structures are known. It tries for 200 ms.
func Unproven(pid int) string {
	t, mem, err := openTarget(pid, context.Host())
	if err != nil {
		return ""
	}
	defer mem.Close()
	defer t.shut()
	if t.refresh(pid); t.tables == nil {
		return ""
	}
	t.verifySoon()
	return t.unprovenWhy()
}
