//go:build cgo

package main

/*
#include <stdlib.h>
*/
import "C"

import (
	"unsafe"

	"github.com/seedwalk/seedwalk/symbol"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// natives names functions of modules by their own symbols and exports. It does not read separate debug files
// in the program, because they may be larger than the program.
type natives struct {
	tables map[uint32]*symbol.Table // by the module's number
	texts  map[string]*C.char
	none   *C.char
}

// Bounds of the caches.
const (
	maxTables = 1 << 10
	maxTexts  = 1 << 16
)

func newNatives() natives {
	return natives{map[uint32]*symbol.Table{}, map[string]*C.char{}, C.CString("")}
}

// trim frees texts. It is called when no caller has texts any more.
func (n *natives) trim() {
	if len(n.tables) > maxTables {
		clear(n.tables)
	}
	if len(n.texts) > maxTexts {
		for _, t := range n.texts {
			C.free(unsafe.Pointer(t))
		}
		clear(n.texts)
	}
}

// name returns the function at an address of a module, "" if unknown.
func (n *natives) name(m *module.Module, addr uint64) *C.char {
	name := n.find(m, addr-m.Bias)
	if name == "" {
		return n.none
	}
	t := n.texts[name]
	if t == nil {
		t = C.CString(name)
		n.texts[name] = t
	}
	return t
}

func (n *natives) find(m *module.Module, addr uint64) string {
	table := n.tables[m.ID]
	switch {
	case table != nil:
	case m.PE != nil:
		table = symbol.PE(m.PE, nil)
	case m.ELF != nil:
		table = symbol.ELF(m.ELF, "", nil)
	default:
		return ""
	}
	n.tables[m.ID] = table
	name, _, ok := table.Find(addr)
	if !ok {
		return ""
	}
	return symbol.Demangle(name)
}
