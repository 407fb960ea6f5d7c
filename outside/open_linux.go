package outside

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/live"
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
	}
	if n := live.NumbersOf(pid); n.Foreign() {
		t.threads.numbers = n
	}
	return t, mem, nil
}

// Refuses reports why a process cannot be sampled from outside, "" if it can: no
// runtime in it publishes its structures, or its memory may not be read.
func Refuses(pid int) string {
	t, mem, err := openTarget(pid, context.Host())
	if err != nil {
		return refusesUnread(pid)
	}
	defer mem.Close()
	t.refresh(pid)
	switch {
	case t.tables != nil:
		return ""
	case t.why != "":
		return t.why
	case t.table == nil:
		return "its mappings cannot be read"
	}
	return "its runtime does not publish its structures (.NET 9 and later do)"
}
