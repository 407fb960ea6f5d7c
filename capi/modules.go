package main

/*
#include "types.h"
*/
import "C"

import (
	"bytes"
	"unsafe"

	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/pe"
)

//export seedwalk_add_module
func seedwalk_add_module(h C.seedwalk_handle, id C.int32_t, path *C.cchar, start, end, bias C.uint64_t) C.int {
	in := find(h)
	switch {
	case in == nil:
		return badHandle
	case path == nil || id <= 0 || start >= end:
		return badArgument
	}
	m := module.LoadELF(uint32(id), text(path), uint64(start), uint64(end), uint64(bias))
	in.modules = append(in.modules, m)
	if m.ELF == nil {
		return unreadable // its range is known all the same
	}
	return ok
}

//export seedwalk_add_pe
func seedwalk_add_pe(h C.seedwalk_handle, id C.int32_t, path *C.cchar, base C.uint64_t) C.int {
	in := find(h)
	switch {
	case in == nil:
		return badHandle
	case path == nil || id <= 0 || base == 0:
		return badArgument
	}
	m := module.LoadPE(uint32(id), text(path), uint64(base), 0)
	if m.PE == nil {
		return unreadable // nor is its range known
	}
	in.modules = append(in.modules, m)
	return ok
}

//export seedwalk_add_pe_mapped
func seedwalk_add_pe_mapped(h C.seedwalk_handle, id C.int32_t, name *C.cchar, base C.uint64_t, image *C.cbyte, length C.uint64_t) C.int {
	in := find(h)
	switch {
	case in == nil:
		return badHandle
	case name == nil || id <= 0 || base == 0 || image == nil || length == 0 || length > pe.MaxFile || base+length < base:
		return badArgument
	}
	copied := bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(image)), int(length)))
	f, err := pe.FromMemory(copied, text(name))
	if err != nil {
		in.modules = append(in.modules, module.Module{ID: uint32(id), Start: uint64(base), End: uint64(base + length), Bias: uint64(base), Path: text(name), Err: err})
		return unreadable // its range is known all the same
	}
	in.modules = append(in.modules, module.PEFromFile(uint32(id), f, text(name), uint64(base), uint64(base+length)))
	return ok
}

// text is a C string in Go.
func text(s *C.cchar) string { return C.GoString((*C.char)(unsafe.Pointer(s))) }

//export seedwalk_add_managed
func seedwalk_add_managed(h C.seedwalk_handle, start, end C.uint64_t) C.int {
	in := find(h)
	switch {
	case in == nil:
		return badHandle
	case start >= end:
		return badArgument
	}
	in.managed = append(in.managed, memory.Range{Start: uint64(start), End: uint64(end)})
	return ok
}

//export seedwalk_clear
func seedwalk_clear(h C.seedwalk_handle) C.int {
	in := find(h)
	if in == nil {
		return badHandle
	}
	in.modules, in.managed, in.scanned = nil, nil, nil
	return ok
}

// scanner reads the modules and the code of this process.
type scanner func() *module.Table

//export seedwalk_scan
func seedwalk_scan(h C.seedwalk_handle) C.int {
	in := find(h)
	if in == nil {
		return badHandle
	}
	if in.scan == nil {
		in.scan = newScanner()
	}
	t := in.scan()
	if t == nil {
		return unreadable
	}
	in.scanned = t
	return ok
}

//export seedwalk_commit
func seedwalk_commit(h C.seedwalk_handle) C.int {
	in := find(h)
	if in == nil {
		return badHandle
	}
	modules, managed := in.modules, in.managed
	if in.scanned != nil {
		modules, managed = nil, in.scanned.Managed()
		for i := range in.scanned.Len() {
			m := *in.scanned.At(i)
			m.ID = uint32(i) + 1
			modules = append(modules, m)
		}
	}
	in.gen++
	in.table = module.NewTable(in.gen, modules, managed)
	in.merger.SetTable(in.table)
	garbage.Collect()
	return ok
}
