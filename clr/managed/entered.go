package managed

import (
	"strings"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Code of PE images that is entered without a call. A walk that begins there would read a wrong return
// address. The CLR's redirect and hijack stubs have no names: they are not exported, and there are no
// symbols. But both make room for the return address with a push that their unwind data omit, and no other
// function of real images does that. A *dispatcher* is a function at which the kernel enters user mode.

// Entrances finds such code in the images of a process, once per image. The zero Entrances is empty.
type Entrances struct{ known map[uint32]entrance } // by module ID

// entrance locates the code of one image that is entered without a call, as addresses in it.
type entrance struct{ stubs, dispatchers, loader []memory.Range }

// Of returns the specials of all modules of a table, as far as there is room: the CLR's stubs up to the store
// of their return address, the dispatchers, and the loader's functions. It reads whole exception directories,
// so do not call it in a suspended window.
func (e *Entrances) Of(t *module.Table) (s Specials) {
	prev := e.known
	e.known = make(map[uint32]entrance, t.Len())
	for i := range t.Len() {
		m := t.At(i)
		if m.PE == nil {
			continue
		}
		found, ok := prev[m.ID]
		if !ok {
			found = entrancesOf(m)
		}
		e.known[m.ID] = found
		s.Redirect.addMoved(found.stubs, m.Start)
		s.Dispatch.addMoved(found.dispatchers, m.Start)
		s.Loader.addMoved(found.loader, m.Start)
	}
	return s
}

func entrancesOf(m *module.Module) (e entrance) {
	e.stubs = Entered(m.PE)
	if strings.HasSuffix(strings.ToLower(m.Path), `\ntdll.dll`) {
		e.dispatchers = Dispatchers(m.PE)
		e.loader = LoaderFunctions(m.PE)
	}
	return e
}

// addMoved adds ranges of an image that is mapped at base.
func (p *Places) addMoved(ranges []memory.Range, base uint64) {
	for _, r := range ranges {
		p.Add(memory.Range{Start: base + r.Start, End: base + r.End})
	}
}

// maxFound bounds the ranges of one image.
const maxFound = 16

// Entered returns the parts of an image's functions that make room for their own return address, up to its
// store. A thread interrupted there, or in a function called from there, has no return address in that place
// yet. Entered reads the whole exception directory, so do not call it in a suspended window.
func Entered(f *pe.File) (out []memory.Range) {
	for i := 0; i < f.AMD64().Len() && len(out) < maxFound; i++ {
		fn := f.AMD64().Entry(i)
		if fn.End <= fn.Begin || fn.Unwind&1 != 0 {
			continue
		}
		code := f.Tail(fn.Begin, int(min(fn.End-fn.Begin, maxStub)))
		if n := pushOfVolatile(code); n != 0 && hides(f, fn, n) {
			out = append(out, memory.Range{Start: uint64(fn.Begin), End: uint64(fn.Begin + stored(code))})
		}
	}
	return out
}

// maxStub is the number of bytes of a function's code that are read. The stubs have 39 to 56 bytes, and store
// the return address early or call a function that does.
const maxStub = 64

// pushOfVolatile returns the length of a function's beginning up to its first push, if that pushes a register
// that functions need not preserve: rax, rcx, rdx, r8 to r11. A stub may copy the stack pointer before it. It
// returns 0 if there is none.
func pushOfVolatile(code []byte) uint8 {
	n := 0
	if len(code) >= 3 && code[0] == 0x48 && code[1] == 0x8b && code[2]&0xc7 == 0xc4 { // mov reg, rsp
		n = 3
	}
	switch code = code[n:]; {
	case len(code) < 2:
	case code[0] >= 0x50 && code[0] <= 0x52:
		return uint8(n) + 1
	case code[0] == 0x41 && code[1] >= 0x50 && code[1] <= 0x53:
		return uint8(n) + 2
	}
	return 0
}

// hides reports whether a function's unwind data describe a prolog, but not its first n bytes.
func hides(f *pe.File, fn peamd64.RuntimeFunction, n uint8) bool {
	info, fault := f.AMD64().Info(fn.Unwind)
	if !fault.OK() || info.Chained() {
		return false
	}
	known := false
	for b := info.Codes; len(b) > 0; {
		c, why := info.Code(b)
		if why != peamd64.OK || c.Size() == 0 || c.Size() > len(b) {
			return false
		}
		if c.Op == peamd64.UWOP_EPILOG { // its offset is not in the prolog
			b = b[c.Size():]
			continue
		}
		if c.Op == peamd64.UWOP_PUSH_MACHFRAME || c.Offset <= n {
			return false
		}
		known = true
		b = b[c.Size():]
	}
	return known
}

// stored returns the offset in a stub from which the return address is in its place: `mov [rbp+disp8], rax`
// into the slot of the first push if the stub stores it itself, else the call of the function that does. Of
// that instruction only the first byte counts, so a return address after it does not.
func stored(code []byte) uint32 {
	frame := -1 // distance from the frame register to the slot
	call := 0
	for i := 0; i+4 <= len(code); i++ {
		switch b := code[i:]; {
		case frame < 0 && b[0] == 0x48 && b[1] == 0x83 && b[2] == 0xec: // sub rsp, imm8
			frame = int(b[3]) + 8
		case frame >= 0 && b[0] == 0x48 && b[1] == 0x89 && b[2] == 0x45 &&
			int(b[3]) == frame: // mov [rbp+frame], rax
			return uint32(i) + 1
		case call == 0 && b[0] == 0xe8:
			call = i
		}
	}
	return uint32(call) + 1
}

// dispatchers are the functions at which the kernel enters user mode, by ntdll's names.
var dispatchers = map[string]bool{"KiUserExceptionDispatcher": true, "KiUserApcDispatcher": true,
	"KiUserCallbackDispatcher": true}

// dispatcherSize bounds a dispatcher whose end is unknown, bytes.
const dispatcherSize = 64

// Dispatchers returns the dispatchers of ntdll. It reads the export directory, so do not call it in a
// suspended window.
func Dispatchers(f *pe.File) (out []memory.Range) {
	exports, _ := f.Exports() // a partial result is useful
	for i := range exports {
		e := &exports[i]
		if !dispatchers[e.Name] || e.RVA == 0 || len(out) == maxFound {
			continue
		}
		end := e.RVA + dispatcherSize
		if fn, ok := f.AMD64().Lookup(e.RVA); ok {
			end = fn.End
		}
		out = append(out, memory.Range{Start: uint64(e.RVA), End: uint64(end)})
	}
	return out
}
