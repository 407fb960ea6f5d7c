package target

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/metadata"
)

// name asks the runtime's structures which method is at ip; name is "" for what
// they have none of. same is the method's identity where ip is in a part of one
// that has begun elsewhere.
func (t *Process) MethodAt(ip uint64) (name, module string, stub bool, same clr.FunctionID) {
	var m contract.Method
	if t.Tables.Find(ip, &m) != contract.Found {
		return "", "", false, 0
	}
	if m.MethodDesc != 0 {
		n, ok := t.Names.Desc(m.MethodDesc)
		if !ok {
			return "", "", false, 0
		}
		return n.Readable(), n.Module, n.Dynamic && isStub(n.Name), 0
	}
	n, begin, ok := t.Names.Precompiled(m.Base, ip)
	if !ok {
		return "", "", false, 0
	}
	if n.Name != "" {
		name = n.Readable()
	}
	return name, n.Module, false, clr.FunctionID(begin)
}

// precompiledPlace is place of code in a precompiled image.
func (t *Process) precompiledPlace(addr uint64) (p metadata.Place, ok bool) {
	var m contract.Method
	if t.Tables.Find(addr, &m) != contract.Found || m.Kind != contract.R2R {
		return p, false
	}
	return t.Names.PrecompiledPlace(m.Base, addr)
}

// place asks where in the source the code at an address comes from, of methods whose module
// has a Portable PDB.
func (t *Process) PlaceAt(addr uint64) (p metadata.Place, ok bool) {
	d, ok := t.Tables.Debug(addr)
	if !ok {
		return t.precompiledPlace(addr)
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

// isStub tells the runtime's own stubs from methods that a program has made.
func isStub(name string) bool { return len(name) > 8 && name[:8] == "IL_STUB_" }
