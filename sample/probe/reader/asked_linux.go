package reader

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/target"
)

// Sometimes the kernel does not let the tool read the target: in a container without SYS_PTRACE whose filter
// refuses the calls, with Yama's ptrace_scope 2 or 3, or for a program with more capabilities. Then the probe
// in the target reads the memory, and the mappings too if needed.

// Store is a target's memory.
type Store interface {
	live.Memory
	Close() error
}

// Memory is memory that the probe reads.
type Memory struct {
	*probe.Memory
	Choice *Readers
}

// openAsked returns a target whose memory the probe reads.
func openAsked(pid int, file *probe.File) (*target.Process, *Memory) {
	c := &Readers{pid: strconv.Itoa(pid), sig: file.Signals}
	mem := &Memory{file.Memory(c), c}
	loader := live.NewLoader(pid)
	loader.Memory = mem
	t := target.New(pid, file.Arch(), mem, loader)
	if n := live.NumbersOf(pid); n.Foreign() {
		t.Threads.Numbers = n
	}
	t.MapsOf = mem.maps
	return t, mem
}

// Open opens a target: through the kernel if it permits that, otherwise through the probe.
func Open(pid int, file *probe.File) (*target.Process, Store, *Memory) {
	if t, mem, err := target.Open(pid, file.Arch()); err == nil {
		return t, mem, nil
	}
	t, mem := openAsked(pid, file)
	return t, mem, mem
}

// maps returns the target's mappings, from the kernel or from the probe.
func (m *Memory) maps(pid int) ([]live.Mapping, error) {
	maps, err := live.Maps(pid)
	if err == nil {
		return maps, nil
	}
	text, a := m.Mappings()
	if a != probe.Whole {
		return nil, errors.New("the probe does not report the mappings")
	}
	return live.ParseMaps(bytes.NewReader(text))
}
