package walk

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// managedCode is the part of the runtime's own tables that a walk needs for each frame.
type managedCode interface {
	// Walk steps out of methods whose rules are cached. The Module of a frame is its method's index in ids.
	Walk(s *unwind.State, mem *memory.Window, b *unwind.Bounds,
		out []unwind.Frame) (n int, ids []clr.FunctionID)
	// Step steps out of a managed frame or a stub.
	Step(s *unwind.State, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) unwind.Stop
	// TrueReturn returns the return address that the runtime has replaced in a slot, from a copy of its
	// Thread.
	TrueReturn(object []byte, slot uint64) (ra uint64, ok bool)
	// ReturnSlot returns the address from which the last Step has read the return address, on ARM64; 0 if it
	// was in its register.
	ReturnSlot() uint64
	// Function reports whether there is code of the runtime at an address, and its method; 0 for a stub.
	Function(at unwind.Address) (id clr.FunctionID, ok bool)
}

// runtimeCode is a real runtime's code.
type runtimeCode struct {
	*managed.Tables
	tables *contract.Tables
	asked  contract.Method
}

// CodeOf returns the code that the tables describe, nil if tables is nil.
func CodeOf(tables *contract.Tables, steps *managed.Tables) managedCode {
	if tables == nil {
		return nil
	}
	return &runtimeCode{Tables: steps, tables: tables}
}

func (c *runtimeCode) Function(at unwind.Address) (id clr.FunctionID, ok bool) {
	if c.tables.Find(at.Lookup(), &c.asked) != contract.Found {
		return 0, false
	}
	return c.asked.Function(), true
}
