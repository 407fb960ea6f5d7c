package walk

import (
	"strings"

	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/stack/merge"
)

// goFunction is the role of a function of Go's runtime in stacks.
type goFunction uint8

const (
	goOther    goFunction = iota
	goRoot                // has no caller
	goCallback            // runs on a goroutine's stack for a caller of C, which is on another stack
)

// goFunctions lists the functions of Go's runtime whose caller is not on the same stack. Functions marked
// TOPFRAME start a stack. mcall switches to the thread's own stack. cgocallback switches from a C caller's
// stack to a goroutine's. Source: Go's src/runtime/asm_amd64.s.
var goFunctions = map[string]goFunction{"runtime.goexit": goRoot, "runtime.mstart": goRoot,
	"runtime.rt0_go": goRoot, "runtime.mcall": goRoot, "runtime.cgocallback": goCallback}

// maxGoImages bounds the images whose symbols are kept. A process may load and unload libraries all the time.
const maxGoImages = 1 << 10

// goSymbol is such a function in an image.
type goSymbol struct {
	start, end uint64 // the image's own addresses
	role       goFunction
}

// goSymbols returns these functions of an image, none if it is not Go's or has no symbols.
func goSymbols(f *elf.File) (all []goSymbol) {
	if f == nil || !f.Go() {
		return nil
	}
	for s := range f.Symbols(false) {
		if role := goFunctions[strings.TrimSuffix(s.Name, ".abi0")]; role != goOther {
			all = append(all, goSymbol{s.Value, s.Value + s.Size, role})
		}
	}
	return all
}

// goRole returns the role of a frame's function.
func (w *Walker) goRole(f *merge.Frame) goFunction {
	if f.Module < 0 || f.Exact { // the first instructions of mcall are on the caller's stack
		return goOther
	}
	m := w.Unmanaged.Table().At(int(f.Module))
	symbols, known := w.goSymbols[m.ID]
	if !known {
		if len(w.goSymbols) >= maxGoImages {
			clear(w.goSymbols)
		}
		symbols = goSymbols(m.ELF)
		w.goSymbols[m.ID] = symbols
	}
	at := f.Address().Lookup() - m.Bias
	for _, s := range symbols {
		if s.start <= at && at < s.end {
			return s.role
		}
	}
	return goOther
}

// untilGoRoot returns the number of frames up to and including the first root of Go's runtime. On x86-64,
// unwind data do not mark the roots, so a walk continues into memory without frames. untilGoRoot returns 0 if
// there is no root, or if C called the goroutine: then the caller is missing, because it is on another stack.
func (w *Walker) untilGoRoot() int {
	for i := range w.out[:w.n] {
		switch w.goRole(&w.out[i]) {
		case goRoot:
			return i + 1
		case goCallback:
			return 0
		}
	}
	return 0
}
