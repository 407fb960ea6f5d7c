// Package clrnames reads the names of .NET runtime functions from a runtime image that has no
// symbols. The runtime holds tables of the native functions that managed code calls: their names
// and addresses are data of the image.
//
// Sources: measured on libcoreclr.so 9.0.5 and on single-file programs of .NET 8.0.6, 9.0.9, and
// 10.0.9; dotnet/runtime src/coreclr/vm/ecall.h and qcallentrypoints.cpp name the structures.
//
// Glossary. An *FCall* is a native function that is the body of a managed method. A
// *QCall* is a native function that managed code calls by P/Invoke. An address is the image's own.
//
// Layout, in 64-bit words after relocation:
//
//	class table   class name, namespace, FCall array
//	FCall array   flags, code, method name [, signature if flags has bit 1]; flags with bit 0 ends it
//	QCall table   name, code
//
// Strategy. All relocated words are collected and each is tried as the first word of a row. A row
// counts only if its code begins a function of the unwind table. QCall rows count only in
// runs of minRun or more, since single pairs of a string and a function occur elsewhere.
//
// Known gaps: helpers of the JIT compiler, ARM64 images with authenticated pointers, and 32-bit
// images have no names here.
package clrnames

import (
	"cmp"
	"slices"
	"strings"
)

// Image is a runtime image as it is after relocation.
type Image interface {
	// Pointers calls yield for each relocated word, in any order, until it returns false.
	Pointers(yield func(addr, value uint64) bool)
	// Word returns a word that is not relocated.
	Word(addr uint64) (uint64, bool)
	// String returns the text at an address, up to its terminating zero, at most MaxName bytes.
	String(addr uint64) (string, bool)
	// IsFunction reports whether a function begins at an address.
	IsFunction(addr uint64) bool
}

// Name is the name of one function.
type Name struct {
	Addr uint64
	Name string // namespace.class.method of an FCall, the plain name of a QCall
}

// Bounds of an image's tables.
const (
	MaxName     = 256
	maxPointers = 1 << 20
	maxRows     = 1 << 12 // of one FCall array
	maxNames    = 1 << 16
	minRun      = 8 // rows of a QCall table
)

// Flags of an FCall row.
const (
	lastRow      = 1
	hasSignature = 2
)

// Counts holds the number of entries of each kind.
type Counts struct{ Classes, FCalls, QCalls int }

// reader holds the relocated words of an image.
type reader struct {
	im       Image
	pointers map[uint64]uint64
	order    []uint64 // their addresses, sorted
	names    []Name
	counts   Counts
}

// Read returns the names that an image holds, sorted by address. Functions with several names have
// several entries.
func Read(im Image) ([]Name, Counts) {
	r := &reader{im: im, pointers: map[uint64]uint64{}}
	im.Pointers(func(addr, value uint64) bool {
		r.pointers[addr] = value
		return len(r.pointers) < maxPointers
	})
	for addr := range r.pointers {
		r.order = append(r.order, addr)
	}
	slices.Sort(r.order)
	for _, addr := range r.order {
		r.class(addr)
	}
	r.qcalls()
	slices.SortFunc(r.names,
		func(a, b Name) int { return cmp.Or(cmp.Compare(a.Addr, b.Addr), strings.Compare(a.Name, b.Name)) })
	r.names = slices.Compact(r.names)
	return r.names, r.counts
}

// text returns the identifier that a relocated word points to.
func (r *reader) text(addr uint64) (string, bool) {
	v, ok := r.pointers[addr]
	if !ok {
		return "", false
	}
	s, ok := r.im.String(v)
	return s, ok && isName(s)
}

// function returns the function that a relocated word points to.
func (r *reader) function(addr uint64) (uint64, bool) {
	v, ok := r.pointers[addr]
	return v, ok && r.im.IsFunction(v)
}

// isName reports whether a text can be the name of a class, a namespace, or a function.
func isName(s string) bool {
	if len(s) < 2 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c == '_', c == '.':
		case i > 0 && (c >= '0' && c <= '9' || c == '`' || c == '<' || c == '>'):
		default:
			return false
		}
	}
	return true
}

// class reads a row of the class table at addr, if there is one.
func (r *reader) class(addr uint64) {
	class, ok1 := r.text(addr)
	space, ok2 := r.text(addr + 8)
	array, ok3 := r.pointers[addr+16]
	if !ok1 || !ok2 || !ok3 {
		return
	}
	if n := r.fcalls(array, space+"."+class+"."); n > 0 {
		r.counts.Classes++
		r.counts.FCalls += n
	}
}

// fcalls reads an array of FCalls. Without such an array, it returns 0 and keeps no name.
func (r *reader) fcalls(addr uint64, prefix string) int {
	before := len(r.names)
	for range maxRows {
		flags, ok := r.im.Word(addr)
		if _, relocated := r.pointers[addr]; !ok || relocated {
			break
		}
		if flags&lastRow != 0 {
			return len(r.names) - before
		}
		code, ok1 := r.function(addr + 8)
		name, ok2 := r.text(addr + 16)
		if !ok1 || !ok2 || len(r.names) >= maxNames {
			break
		}
		r.names = append(r.names, Name{code, prefix + name})
		addr += 24
		if flags&hasSignature != 0 {
			addr += 8
		}
	}
	r.names = r.names[:before]
	return 0
}

// qcalls reads the QCall tables. In a run of rows each pair of words is also a pair the other way
// round, of a function and the next name. So a run begins with a name.
func (r *reader) qcalls() {
	row := func(addr uint64) (n Name, ok bool) {
		name, ok1 := r.text(addr)
		code, ok2 := r.function(addr + 8)
		return Name{code, name}, ok1 && ok2
	}
	done := map[uint64]bool{}
	for _, start := range r.order {
		if done[start] {
			continue
		}
		var run []Name
		for addr := start; len(run) < maxNames; addr += 16 {
			n, ok := row(addr)
			if !ok {
				break
			}
			done[addr] = true
			run = append(run, n)
		}
		if len(run) >= minRun && len(r.names)+len(run) <= maxNames {
			r.names = append(r.names, run...)
			r.counts.QCalls += len(run)
		}
	}
}
