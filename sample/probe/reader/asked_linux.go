package reader

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/target"
)

// Where the kernel lets nobody read the target (a container without SYS_PTRACE whose filter
// refuses the calls, Yama's ptrace_scope 2 and 3, a program with capabilities that we
// lack) the probe in it does. It tells what is mapped too, if that is refused as well.

// Store is where a target's memory is read.
type Store interface {
	live.Memory
	Close() error
}

// Memory is memory that the probe reads.
type Memory struct {
	*probe.Memory
	Choice *Readers
}

// openAsked is a target whose memory the probe reads.
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

// Open opens a target by the kernel's leave or by the probe's help.
func Open(pid int, file *probe.File) (*target.Process, Store, *Memory) {
	if t, mem, err := target.Open(pid, file.Arch()); err == nil {
		return t, mem, nil
	}
	t, mem := openAsked(pid, file)
	return t, mem, mem
}

// maps are the target's mappings, by the kernel's word or by the probe's.
func (m *Memory) maps(pid int) ([]live.Mapping, error) {
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
