package walk

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// managedCode is what a walk asks of the runtime's own tables, once a frame.
type managedCode interface {
	// Step leaves a managed frame, or a stub's.
	Step(s *unwind.State, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) unwind.Stop
	// TrueReturn is the return address that the runtime has replaced in a slot, by a copy
	// of its Thread.
	TrueReturn(object []byte, slot uint64) (ra uint64, ok bool)
	// ReturnSlot is where the last Step has read the return address, on ARM64; 0 if it was
	// in its register.
	ReturnSlot() uint64
	// Function reports whether there is code of the runtime's, and whose it is; 0 is
	// nobody's, which is a stub.
	Function(at unwind.Address) (id clr.FunctionID, ok bool)
}

// runtimeCode is that of a real runtime.
type runtimeCode struct {
	*managed.Tables
	tables *contract.Tables
	asked  contract.Method
}

// CodeOf is nil where nothing is known.
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
	if c.asked.Kind != contract.Stub {
		id = identity(&c.asked)
	}
	return id, true
}

// identity is what tells methods apart: the MethodDesc, or for precompiled code
// where it begins. The namer knows a better one for code in parts.
func identity(m *contract.Method) clr.FunctionID {
	if m.MethodDesc != 0 {
		return clr.FunctionID(m.MethodDesc)
	}
	return clr.FunctionID(m.Begin)
}
