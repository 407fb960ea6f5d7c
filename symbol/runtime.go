package symbol

import (
	"bytes"
	"encoding/binary"
	"runtime"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/symbol/clrnames"
)

// runtimeNames returns the names in the tables of a .NET runtime without symbols, none for other images.
func runtimeNames(f *elf.File, cover Cover) (out []Symbol) {
	if !isRuntime(f) {
		return nil
	}
	names, _ := clrnames.Read(&runtimeImage{f: f, cover: cover})
	for i, n := range names {
		switch {
		case i > 0 && names[i-1].Addr == n.Addr:
			continue
		case i+1 < len(names) && names[i+1].Addr == n.Addr: // the linker has merged equal functions
			n.Name += " or " + names[i+1].Name
		}
		out = append(out, Symbol{Addr: n.Addr, Name: n.Name, Rank: RankLocal})
	}
	return out
}

// firstUse is the role of code that saves all argument registers: the runtime then finds or prepares what a
// method calls or uses for the first time. Source: dotnet/runtime src/coreclr/vm/amd64/unixasmmacros.inc,
// PROLOG_WITH_TRANSITION_BLOCK.
const firstUse = "[first use]"

// savesArguments pushes r9, r8, rcx, rdx, rsi, and rdi, in this order.
var savesArguments = []byte{0x41, 0x51, 0x41, 0x50, 0x51, 0x52, 0x56, 0x57}

// prologBytes bounds how far into a function its arguments are saved.
const prologBytes = 24

// runtimeRole returns a function that finds the role of a function in a .NET runtime without symbols, nil for
// other images. It does not keep f.
func runtimeRole(f *elf.File, records func() *cfi.Table) func(addr uint64) string {
	if f.Arch() != context.ArchAMD64 || !isRuntime(f) {
		return nil
	}
	roles := map[uint64]string{}
	for fde := range records().Each {
		if bytes.Contains(f.Tail(fde.Lo, prologBytes), savesArguments) {
			roles[fde.Lo] = firstUse
		}
	}
	runtime.KeepAlive(f)
	return func(addr uint64) string {
		fde, why := records().Find(addr)
		if why != cfi.None {
			return ""
		}
		return roles[fde.Lo]
	}
}

// isRuntime reports whether an image has the exports of a .NET runtime.
func isRuntime(f *elf.File) bool {
	return f.Exports("g_dacTable") || f.Exports("DotNetRuntimeContractDescriptor") ||
		f.Exports("DotNetRuntimeInfo")
}

// runtimeImage adapts an ELF image to clrnames.
type runtimeImage struct {
	f     *elf.File
	cover Cover
}

func (im *runtimeImage) Pointers(yield func(addr, value uint64) bool) { im.f.Relatives(yield) }

func (im *runtimeImage) Word(addr uint64) (uint64, bool) {
	b, ok := im.f.BytesAt(addr, 8)
	if !ok {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

func (im *runtimeImage) String(addr uint64) (string, bool) {
	b := im.f.Tail(addr, clrnames.MaxName)
	n := bytes.IndexByte(b, 0)
	if n < 0 {
		return "", false
	}
	return string(b[:n]), true
}

func (im *runtimeImage) IsFunction(addr uint64) bool {
	start, _, ok := im.cover(addr)
	return ok && start == addr
}
