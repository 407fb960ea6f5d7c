package main

/*
#include "types.h"
*/
import "C"

import (
	"bytes"
	"unsafe"

	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/unwind/module"
)

//export seedwalk_add_module
func seedwalk_add_module(h C.seedwalk_handle, id C.int32_t, path *C.cchar,
	start, end, bias C.uint64_t) C.int {
	in, err := enter(h)
	if err != ok {
		return err
	}
	defer in.leave()
	if path == nil || id <= 0 || start >= end {
		return badArgument
	}
	m := module.LoadELF(uint32(id), text(path), uint64(start), uint64(end), uint64(bias))
	in.add(m)
	if m.ELF == nil {
		return unreadable // its range is known anyway
	}
	return ok
}

//export seedwalk_add_pe
func seedwalk_add_pe(h C.seedwalk_handle, id C.int32_t, path *C.cchar, base C.uint64_t) C.int {
	in, err := enter(h)
	if err != ok {
		return err
	}
	defer in.leave()
	if path == nil || id <= 0 || base == 0 {
		return badArgument
	}
	m := module.LoadPE(uint32(id), text(path), uint64(base), 0)
	if m.PE == nil {
		return unreadable // nor is its range known
	}
	in.add(m)
	return ok
}

//export seedwalk_add_pe_mapped
func seedwalk_add_pe_mapped(h C.seedwalk_handle, id C.int32_t, name *C.cchar, base C.uint64_t,
	image *C.cbyte, length C.uint64_t) C.int {
	in, err := enter(h)
	if err != ok {
		return err
	}
	defer in.leave()
	if name == nil || id <= 0 || base == 0 || image == nil || length == 0 || length > pe.MaxFile ||
		base+length < base {
		return badArgument
	}
	copied := bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(image)), int(length)))
	f, why := pe.FromMemory(copied, text(name))
	if why != nil {
		in.add(module.Module{ID: uint32(id), Start: uint64(base), End: uint64(base + length),
			Bias: uint64(base), Path: text(name), Err: why})
		return unreadable // its range is known anyway
	}
	in.add(module.PEFromFile(uint32(id), f, text(name), uint64(base), uint64(base+length)))
	return ok
}

func (in *instance) add(m module.Module) { in.modules, in.changed = append(in.modules, m), true }

// text converts a C string.
func text(s *C.cchar) string { return C.GoString((*C.char)(unsafe.Pointer(s))) }

//export seedwalk_add_managed
func seedwalk_add_managed(h C.seedwalk_handle, start, end C.uint64_t) C.int {
	in, err := enter(h)
	if err != ok {
		return err
	}
	defer in.leave()
	if start >= end {
		return badArgument
	}
	in.managed, in.changed = append(in.managed, memory.Range{Start: uint64(start), End: uint64(end)}), true
	return ok
}

//export seedwalk_clear
func seedwalk_clear(h C.seedwalk_handle) C.int {
	in, err := enter(h)
	if err != ok {
		return err
	}
	defer in.leave()
	in.modules, in.managed, in.scanned, in.changed = nil, nil, nil, true
	in.stubs = managed.Entrances{} // new modules may reuse the ids of the old ones
	in.runtime.clear()
	return ok
}

// scanner reads the modules and the code of this process.
type scanner func() *module.Table

//export seedwalk_scan
func seedwalk_scan(h C.seedwalk_handle) C.int {
	in, err := enter(h)
	if err != ok {
		return err
	}
	defer in.leave()
	if in.scan == nil {
		in.scan = in.newScanner()
	}
	t := in.scan()
	if t == nil {
		return unreadable
	}
	in.scanned, in.changed = t, true
	return ok
}

//export seedwalk_commit
func seedwalk_commit(h C.seedwalk_handle) C.int {
	in, err := enter(h)
	if err != ok {
		return err
	}
	defer in.leave()
	if in.changed {
		in.commit()
	}
	garbage.Collect()
	return ok
}

func (in *instance) commit() {
	in.gen++
	in.changed = false
	modules, code := in.modules, in.managed
	if in.scanned != nil {
		modules, code = nil, in.scanned.Managed()
		for i := range in.scanned.Len() {
			modules = append(modules, *in.scanned.At(i))
		}
	}
	in.table = module.NewTable(in.gen, modules, code)
	in.merger.SetTable(in.table)
	in.specials = managed.Specials{}
	if in.walker.Arch() == context.ArchAMD64 {
		in.specials = in.stubs.Of(in.table)
	}
	if in.own {
		in.runtime.found(in)
	}
}

//export seedwalk_get_module
func seedwalk_get_module(h C.seedwalk_handle, id C.int32_t, out *C.seedwalk_module) C.int {
	in, err := enter(h)
	if err != ok {
		return err
	}
	defer in.leave()
	if _, err := sizeOf(unsafe.Pointer(out), leastModule); err != ok {
		return err
	}
	for i := range in.table.Len() {
		if m := in.table.At(i); m.ID == uint32(id) {
			described := describe(m)
			answer(unsafe.Pointer(out), unsafe.Pointer(&described), unsafe.Sizeof(described))
			return ok
		}
	}
	return noModule
}

// leastModule is the least size of a seedwalk_module: up to its bounds.
const leastModule = 24

func describe(m *module.Module) C.seedwalk_module {
	out := C.seedwalk_module{id: C.int32_t(m.ID), start: C.uint64_t(m.Start),
		end: C.uint64_t(m.End), bias: C.uint64_t(m.Bias)}
	put(m.BuildID, &out.build_id[0], C.int32_t(len(out.build_id)))
	put(m.Path, &out.path[0], C.int32_t(len(out.path)))
	return out
}
