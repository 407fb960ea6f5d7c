package managed

import (
	"strings"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Code of PE images that is entered without a call. A walk that begins there
// reads a return address that is not one. Nothing names the CLR's redirect and
// hijack stubs: they are not exported, and there are no symbols. But both make
// room for the return address by a push that their unwind data does not tell of,
// which no other function of real images does. A *dispatcher* is where the
// kernel enters user mode.

// Entrances finds such code in the images of a process, in each once. The zero
// Entrances has looked at none.
type Entrances struct{ known map[uint32]entrance } // by module ID

// entrance is where one image is entered without a call, as addresses in it.
type entrance struct{ stubs, dispatchers, loader []memory.Range }

// Of returns the specials of all modules of a table, as far as there is room: the
// CLR's stubs up to where they store their return address, the dispatchers, and the
// loader's functions. It reads whole exception directories: not for a suspended window.
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

// maxFound bounds what one image can have.
const maxFound = 16

// Entered returns the parts of an image's functions that make room for their
// own return address, up to where it is stored. A thread interrupted there, or
// in what is called from there, has no return address in that place yet. It
// reads the whole exception directory: not for a suspended window.
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

// maxStub is how much of a function's code is read, bytes; the stubs have 39 to
// 56, and store the return address soon or call what does.
const maxStub = 64

// pushOfVolatile is the length of a function's beginning up to its first push,
// if that saves a register that functions need not preserve: rax, rcx, rdx, r8
// to r11. A stub may keep the stack pointer before it. 0 if there is none.
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

// hides reports whether a function's unwind data tells of a prolog, but not of
// its first n bytes.
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
		if c.Op == peamd64.UWOP_EPILOG { // its offset is not the prolog's
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

// stored is where in a stub the return address is in its place: behind
// `mov [rbp+disp8], rax` into the slot of the first push if the stub does it
// itself, else at the call that does; the first byte of that instruction is the
// last that counts, so that a return address behind it does not.
func stored(code []byte) uint32 {
	frame := -1 // distance from the frame register to the slot
	call := 0
	for i := 0; i+4 <= len(code); i++ {
		switch b := code[i:]; {
		case frame < 0 && b[0] == 0x48 && b[1] == 0x83 && b[2] == 0xec: // sub rsp, imm8
			frame = int(b[3]) + 8
		case frame >= 0 && b[0] == 0x48 && b[1] == 0x89 && b[2] == 0x45 && int(b[3]) == frame: // mov [rbp+frame], rax
			return uint32(i) + 1
		case call == 0 && b[0] == 0xe8:
			call = i
		}
	}
	return uint32(call) + 1
}

// dispatchers are where the kernel enters user mode, by ntdll's names.
var dispatchers = map[string]bool{"KiUserExceptionDispatcher": true, "KiUserApcDispatcher": true, "KiUserCallbackDispatcher": true}

// dispatcherSize bounds a dispatcher whose function's end is not known, bytes.
const dispatcherSize = 64

// Dispatchers returns the dispatchers of ntdll. It reads the export directory:
// not for a suspended window.
func Dispatchers(f *pe.File) (out []memory.Range) {
	exports, _ := f.Exports() // what could be read counts
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
