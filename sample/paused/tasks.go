package paused

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/seedwalk/seedwalk/clr/tasks"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sample/target"
)

// errNoRuntime means that there is no managed heap to read.
var errNoRuntime = errors.New("no .NET runtime was found whose heap can be read (.NET 8, 9, or 10)")

// KeepStacks makes Read keep the stacks, for Tasks.
func (p *Process) KeepStacks() { p.keep = true }

// Tasks finds the pending async operations and their awaiters. It knows which threads block on them only if
// LookAtTasks or KeepStacks has kept the stacks.
func (p *Process) Tasks() (*tasks.Result, error) {
	t := p.target
	if t.Tables == nil || !t.Tables.Proven() {
		if why := t.UnprovenWhy(); why != "" {
			return nil, errors.New(why)
		}
		return nil, errNoRuntime
	}
	return tasks.Read(&tasks.Source{Memory: t.Mem, Tables: t.Tables, Names: t.Names,
		Contexts: func() []memory.Range { return contexts(t) }, Stacks: p.kept, Moves: p.moves})
}

// contexts returns the allocation contexts of all threads.
func contexts(t *target.Process) (out []memory.Range) {
	d := t.Tables.Descriptor()
	locals, ok1 := d.Offset("Thread", "RuntimeThreadLocals")
	context, ok2 := d.Offset("RuntimeThreadLocals", "AllocContext")
	pointer, ok3 := d.Offset("GCAllocContext", "Pointer")
	limit, ok4 := d.Offset("GCAllocContext", "Limit")
	within, contained := d.Offset("Thread", "AllocContext") // .NET 8: in the Thread itself
	if !contained && !(ok1 && ok2) || !ok3 || !ok4 {
		return nil
	}
	inner, _ := d.Offset("EEAllocContext", "GCAllocationContext") // .NET 10; .NET 9 has no such layer
	t.Threads.Read()
	for _, thread := range t.Threads.Objects {
		at := thread + uint64(within)
		if !contained {
			if at = t.Word(thread + uint64(locals)); at == 0 {
				continue
			}
			at += uint64(context) + uint64(inner)
		}
		out = append(out, memory.Range{Start: t.Word(at + uint64(pointer)),
			End: t.Word(at + uint64(limit))})
	}
	return out
}

// withRegisters returns a copy of a stack, followed by the registers.
func withRegisters(stack []byte, r *context.Registers) []byte {
	out := slices.Clone(stack[:len(stack)&^7])
	words := r.AMD64.GPR[:]
	if r.Arch == context.ArchARM64 {
		words = r.ARM64.X[:]
	}
	for _, w := range words {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out
}
