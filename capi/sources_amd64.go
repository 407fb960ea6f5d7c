//go:build cgo

package main

/*
#include <stdlib.h>

#include "sampler.h"
*/
import "C"

import (
	"unsafe"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/unwind"
)

// sources are where code comes from, by its address, with the files' names in C's memory.
type sources struct {
	wanted bool
	known  map[coded]C.seedwalk_source
	files  map[string]*C.char
}

// coded is an address of a method.
type coded struct {
	function clr.FunctionID
	addr     uint64
}

// Bounds of what is remembered.
const (
	maxSources = 1 << 16
	maxFiles   = 1 << 14
)

func newSources() sources {
	return sources{known: map[coded]C.seedwalk_source{}, files: map[string]*C.char{}}
}

// drop forgets addresses, which may be of other methods now. Files stay.
func (s *sources) drop() { clear(s.known) }

// trim is called when no caller has texts any more.
func (s *sources) trim() {
	if len(s.known) > maxSources || len(s.files) > maxFiles {
		s.drop()
	}
	if len(s.files) > maxFiles {
		for _, f := range s.files {
			C.free(unsafe.Pointer(f))
		}
		clear(s.files)
	}
}

// of fills in a stack's, nil if they are not wanted.
func (s *sources) of(by *sampler, r *rows, frames []merge.Frame) *C.seedwalk_source {
	if !s.wanted || len(frames) == 0 {
		return nil
	}
	if r.sources == nil {
		r.sources = (*C.seedwalk_source)(C.calloc(C.size_t(r.room), C.size_t(unsafe.Sizeof(*r.sources))))
	}
	out := unsafe.Slice(r.sources, len(frames))
	for i := range frames {
		f := &frames[i]
		if out[i] = (C.seedwalk_source{file: by.none, il_offset: -1}); f.Function != 0 {
			out[i] = s.at(by, coded{f.Function, unwind.Address{IP: f.IP, Exact: f.Exact}.Lookup()})
		}
	}
	return r.sources
}

func (s *sources) at(by *sampler, c coded) C.seedwalk_source {
	if at, ok := s.known[c]; ok {
		return at
	}
	at := C.seedwalk_source{file: by.none, il_offset: -1}
	if from, ok := by.agent.Source(c.function, c.addr); ok {
		at.il_offset = C.int32_t(from.IL)
		if from.Line > 0 {
			at.file, at.line, at.column = s.file(from.File), C.int32_t(from.Line), C.int32_t(from.Column)
		}
	}
	s.known[c] = at
	return at
}

func (s *sources) file(name string) *C.char {
	f := s.files[name]
	if f == nil {
		f = C.CString(name)
		s.files[name] = f
	}
	return f
}
