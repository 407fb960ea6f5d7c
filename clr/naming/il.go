package naming

import (
	"strings"

	"github.com/seedwalk/seedwalk/clr/metadata"
)

// Calls reports whether a method calls another one, by its IL. desc is the address of the calling method's
// MethodDesc. callee is the other method's name, as Called returns it.
func (n *Names) Calls(desc uint64, callee string) bool {
	im, rid, _ := n.row(desc)
	if im == nil || im.md == nil || im.head == nil || callee == "" {
		return false
	}
	rva := im.md.RVA(rid)
	at := im.head.at(rva)
	if rva == 0 || at == 0 {
		return false
	}
	head, ok := n.bytes(at, metadata.HeaderSize)
	if !ok {
		head, ok = n.bytes(at, 1) // near the end of readable memory
	}
	header, size, valid := metadata.IL(head)
	if !ok || !valid {
		return false
	}
	il, ok := n.bytes(at+uint64(header), size)
	return ok && im.md.Calls(il, callee)
}

// Called returns the name by which IL calls a method: without its type, and without the interface of an
// explicit implementation.
func (m *Method) Called() string {
	name := m.Name[strings.LastIndex(m.Name, "::")+1:]
	name, _, _ = strings.Cut(strings.TrimPrefix(name, ":"), " (") // of metadata.Method: (async), (iterator)
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		name = name[dot+1:]
	}
	return name
}
