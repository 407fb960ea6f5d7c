package target

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/metadata"
	"github.com/seedwalk/seedwalk/clr/naming"
)

// Method is the name of managed code.
type Method struct {
	Name, Module string
	Stub         bool           // a stub of the runtime
	Volatile     bool           // the FunctionID may mean another method later, see contract.Method
	Same         clr.FunctionID // identifies the method if its code has several parts; 0: one part
}

// MethodAt looks up the method at ip in the runtime's structures. Its name is "" if no method is there.
func (t *Process) MethodAt(ip uint64) (out Method) {
	n, m, same := t.method(ip)
	out = Method{Module: n.Module, Stub: n.Dynamic && isStub(n.Name), Volatile: m.Volatile, Same: same}
	if n.Name != "" {
		out.Name = n.Readable()
	}
	return out
}

// method is MethodAt without formatting the name.
func (t *Process) method(ip uint64) (n naming.Method, m contract.Method, same clr.FunctionID) {
	if t.Tables.Find(ip, &m) != contract.Found {
		return n, contract.Method{}, 0
	}
	if m.MethodDesc == 0 {
		n, begin, ok := t.Names.Precompiled(m.Base, ip)
		if !ok {
			return naming.Method{}, m, 0
		}
		return n, m, clr.FunctionID(begin)
	}
	desc := t.Names.Desc
	if m.Volatile {
		desc = t.Names.Volatile
	}
	if n, ok := desc(m.MethodDesc); ok {
		return n, m, 0
	}
	return naming.Method{}, m, 0
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

// Uncalled returns how many of InlinedAt's methods, from the innermost, did not make the call at addr to
// the managed code at callee. The JIT compiler keeps no position for some calls. The position of an
// argument's inlined code then extends over the call. The caller is the innermost method whose IL has a call
// of callee's name. Uncalled returns 0 if no IL has one, as for calls of delegates and calls that the JIT
// compiler adds.
func (t *Process) Uncalled(addr, callee uint64) int {
	d, ok := t.Tables.Debug(addr)
	if !ok {
		return 0
	}
	n, _, _ := t.method(callee)
	name := n.Called()
	for i, in := range t.Tables.Inlines(d, uint32(addr-d.Begin)) {
		if t.Names.Calls(in.Method, name) {
			return i
		}
	}
	return 0
}

// isStub reports whether a name is that of a stub of the runtime and not of a method that the program made.
func isStub(name string) bool { return len(name) > 8 && name[:8] == "IL_STUB_" }
