package host

/*
#include "shim.h"
*/
import "C"

import (
	"os"
	"strings"
	"unsafe"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/clr/metadata"
	"github.com/seedwalk/seedwalk/clr/naming"
	"github.com/seedwalk/seedwalk/internal/wholefile"
	"github.com/seedwalk/seedwalk/process/live"
)

// types names methods and classes with the metadata of their modules in the process's memory.
type types struct {
	images *naming.Images // nil: not opened yet
	failed bool
}

// Images implements agent.Process. It returns nil if the process cannot read its own memory.
func (h *process) Images() *naming.Images {
	t := &h.types
	if t.images == nil && !t.failed {
		p, err := live.OpenProcess(os.Getpid())
		if t.failed = err != nil; err == nil {
			t.images = naming.NewImages(p)
			t.images.File = wholefile.Read
		}
	}
	return t.images
}

// Forget implements agent.Process: other modules may now be at the known addresses.
func (h *process) Forget() {
	if h.types.images != nil {
		h.types.images.Forget()
	}
}

// FunctionName asks the CLR for the plain name, and looks in the metadata for what distinguishes overloads.
// Modules without a file have only a plain name.
func (h *process) FunctionName(f clr.FunctionID) (name demangle.MethodName, module string, ok bool) {
	hr := C.sw_function_name(C.uint64_t(f), (*C.char)(unsafe.Pointer(&h.name[0])), C.int(len(h.name)),
		(*C.char)(unsafe.Pointer(&h.module[0])), C.int(len(h.module)))
	name.Name, module, ok = text(h.name), text(h.module), !clr.HRESULT(hr).Failed()
	var s C.struct_sw_shape
	images := h.Images()
	if !ok || images == nil || clr.HRESULT(C.sw_function_shape(C.uint64_t(f), &s)).Failed() || s.base == 0 {
		return name, module, ok
	}
	full, found := images.Method(uint64(s.base), int(s.token&0xffffff))
	if !found || full.Name != name.Name { // the file was edited, or differs from the module in memory
		return name, module, ok
	}
	if args := h.args(&s, 0); len(args) == len(full.Args) && args != nil {
		full.Args = metadata.Unshared(args, full.Args)
	}
	var class C.struct_sw_shape
	if s.class_id != 0 && !clr.HRESULT(C.sw_class_shape(s.class_id, &class)).Failed() {
		if args := h.args(&class, 0); len(args) == len(full.TypeArgs) && args != nil {
			full.TypeArgs = metadata.Unshared(args, full.TypeArgs)
		}
	}
	return full, module, true
}

// maxTypeNesting bounds nested types.
const maxTypeNesting = 8

// args returns the names of the type arguments of a method or a class; nil if one has no name, or there
// are none.
func (h *process) args(s *C.struct_sw_shape, depth int) []string {
	var out []string
	for _, id := range s.args[:s.count] {
		name := h.className(id, depth+1)
		if name == "" {
			return nil
		}
		out = append(out, name)
	}
	return out
}

// className returns the name of a ClassID, "" if it is unknown.
func (h *process) className(id C.uint64_t, depth int) string {
	var s C.struct_sw_shape
	if id == 0 || depth > maxTypeNesting || clr.HRESULT(C.sw_class_shape(id, &s)).Failed() {
		return ""
	}
	if s.rank != 0 {
		if of := h.className(s.class_id, depth+1); of != "" {
			return of + "[" + strings.Repeat(",", int(min(s.rank, 32))-1) + "]"
		}
		return ""
	}
	return metadata.TypeName(h.Images().Type(uint64(s.base), int(s.token&0xffffff)), h.args(&s, depth))
}
