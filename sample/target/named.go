package target

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/metadata"
)

// Method is the name of managed code.
type Method struct {
	Name, Module string
	Stub         bool           // a stub of the runtime
	Volatile     bool           // the FunctionID may mean another method later, see contract.Method
	Same         clr.FunctionID // identifies the method if its code has several parts; 0: one part
}

// MethodAt looks up the method at ip in the runtime's structures. Its name is "" if there is none.
func (t *Process) MethodAt(ip uint64) (out Method) {
	var m contract.Method
	if t.Tables.Find(ip, &m) != contract.Found {
		return out
	}
	out.Volatile = m.Volatile
	if m.MethodDesc == 0 {
		if n, begin, ok := t.Names.Precompiled(m.Base, ip); ok {
			out.Module, out.Same = n.Module, clr.FunctionID(begin)
			if n.Name != "" {
				out.Name = n.Readable()
			}
		}
		return out
	}
	desc := t.Names.Desc
	if m.Volatile {
		desc = t.Names.Volatile
	}
	if n, ok := desc(m.MethodDesc); ok {
		out.Name, out.Module, out.Stub = n.Readable(), n.Module, n.Dynamic && isStub(n.Name)
	}
	return out
}

// precompiledPlace is PlaceAt for code in a precompiled image.
func (t *Process) precompiledPlace(addr uint64) (p metadata.Place, ok bool) {
	var m contract.Method
	if t.Tables.Find(addr, &m) != contract.Found || m.Kind != contract.R2R {
		return p, false
	}
	return t.Names.PrecompiledPlace(m.Base, addr)
}

// PlaceAt returns the source position of an address in a method whose module has a Portable PDB.
func (t *Process) PlaceAt(addr uint64) (p metadata.Place, ok bool) {
	d, ok := t.Tables.Debug(addr)
	if !ok {
		return t.precompiledPlace(addr)
	}
	if chain := t.Tables.Inlines(d, uint32(addr-d.Begin)); len(chain) > 1 {
		return t.Names.DescPlace(d.Method, chain[len(chain)-1].IL)
	}
	if !t.Names.Lined(d.Method) {
		return p, false
	}
	il, ok := contract.ILAt(t.Tables.Bounds(d), uint32(addr-d.Begin))
	if !ok {
		return p, false
	}
	return t.Names.DescPlace(d.Method, il)
}

// Inlined is a method whose code is part of another, compiled, method.
type Inlined struct {
	Desc           uint64 // MethodDesc
	Name, Module   string
	metadata.Place // Line is 0 if it is unknown
}

// InlinedAt returns the methods that the compiler inlined at an address, the innermost first, without the
// compiled method itself. It returns none if the runtime does not keep them.
func (t *Process) InlinedAt(addr uint64) (all []Inlined) {
	d, ok := t.Tables.Debug(addr)
	if !ok {
		return nil
	}
	chain := t.Tables.Inlines(d, uint32(addr-d.Begin))
	for i := 0; i < len(chain)-1; i++ {
		m, ok := t.Names.Desc(chain[i].Method)
		if !ok {
			return nil
		}
		place, _ := t.Names.DescPlace(chain[i].Method, chain[i].IL)
		all = append(all, Inlined{chain[i].Method, m.Readable() + " (inlined)", m.Module, place})
	}
	return all
}

// isStub reports whether a name is that of a stub of the runtime and not of a method that the program made.
func isStub(name string) bool { return len(name) > 8 && name[:8] == "IL_STUB_" }
