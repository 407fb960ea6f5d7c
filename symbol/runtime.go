package symbol

import (
	"bytes"
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/symbol/clrnames"
)

// runtimeNames returns the names that a .NET runtime without symbols holds in its tables, none for
// other images.
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

// isRuntime reports whether an image exports what only a .NET runtime does.
func isRuntime(f *elf.File) bool {
	for s := range f.Symbols(true) {
		if s.Section != shnUndef && (s.Name == "g_dacTable" || s.Name == "DotNetRuntimeContractDescriptor" || s.Name == "DotNetRuntimeInfo") {
			return true
		}
	}
	return false
}

// runtimeImage is an ELF image as clrnames reads it.
type runtimeImage struct {
	f     *elf.File
	cover Cover
}

// Relocation types that add the image's base to a word.
const (
	relativeAMD64 = 8    // R_X86_64_RELATIVE
	relativeARM64 = 1027 // R_AARCH64_RELATIVE
)

func (im *runtimeImage) Pointers(yield func(addr, value uint64) bool) {
	if im.rela(yield) {
		im.relr(yield)
	}
}

// rela yields the words that .rela.dyn relocates (gABI, Elf64_Rela).
func (im *runtimeImage) rela(yield func(addr, value uint64) bool) bool {
	want := uint32(relativeAMD64)
	if im.f.Arch() == context.ArchARM64 {
		want = relativeARM64
	}
	b, _, _ := im.f.Section(".rela.dyn")
	for ; len(b) >= 24; b = b[24:] {
		le := binary.LittleEndian
		if uint32(le.Uint64(b[8:])) == want && !yield(le.Uint64(b), le.Uint64(b[16:])) {
			return false
		}
	}
	return true
}

// relr yields the words that .relr.dyn relocates (gABI, Elf64_Relr): an even entry is the address of
// a word, an odd one is a bitmap of the 63 words that follow.
func (im *runtimeImage) relr(yield func(addr, value uint64) bool) {
	b, _, _ := im.f.Section(".relr.dyn")
	var next uint64
	at := func(addr uint64) bool {
		v, ok := im.Word(addr)
		return !ok || yield(addr, v)
	}
	for ; len(b) >= 8; b = b[8:] {
		e := binary.LittleEndian.Uint64(b)
		if e&1 == 0 {
			if !at(e) {
				return
			}
			next = e + 8
			continue
		}
		for i := range uint64(63) {
			if e>>(i+1)&1 != 0 && !at(next+8*i) {
				return
			}
		}
		next += 63 * 8
	}
}

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
