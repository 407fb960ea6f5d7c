package image

import (
	"bytes"
	stdelf "debug/elf"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// elfFuncs are random functions, one of them without unwind data, and a
// trampoline.
func elfFuncs(a Arch) (funcs []Func) {
	r := rand.New(rand.NewPCG(6, 6))
	random := RandomAMD64
	if a == ARM64 {
		random = RandomARM64
	}
	for i := range 50 {
		funcs = append(funcs, random(r, ELF, fmt.Sprintf("f%d", i)))
	}
	funcs[0].NoInfo, funcs[1].Root = true, true
	return append(funcs, SignalReturn(a))
}

func buildELF(t *testing.T, a Arch, funcs ...Func) *Image {
	t.Helper()
	return must.Get(Build(a, ELF, "sim.so", 0x7000_0000_0000, funcs))(t)
}

// TestBuildELF reads images with debug/elf of Go.
func TestBuildELF(t *testing.T) {
	for _, a := range []Arch{AMD64, ARM64} {
		im := buildELF(t, a, elfFuncs(a)...)
		f := must.Get(stdelf.NewFile(bytes.NewReader(im.File)))(t)
		machine := map[Arch]stdelf.Machine{AMD64: stdelf.EM_X86_64, ARM64: stdelf.EM_AARCH64}[a]
		expect.True(t, f.Type == stdelf.ET_DYN && f.Machine == machine && len(f.Progs) == 3,
			"%v: %v, %d program headers", a, f.FileHeader, len(f.Progs))
		load := f.Progs[0].ProgHeader
		expect.True(t, load.Type == stdelf.PT_LOAD && load.Flags == stdelf.PF_R|stdelf.PF_X &&
			load.Off == 0 && load.Vaddr == 0 && load.Filesz == uint64(len(im.File)) &&
			load.Memsz == load.Filesz, "%v: %+v", a, load)
		for _, s := range f.Sections[1:] {
			if s.Flags&stdelf.SHF_ALLOC != 0 && s.Addr != s.Offset {
				t.Errorf("%v: %s at %#x stands at %#x", a, s.Name, s.Addr, s.Offset)
			}
		}
		text := f.Section(".text")
		expect.True(t, text != nil && text.Addr == uint64(im.Text[0]) &&
			text.Size == uint64(im.Text[1]-im.Text[0]), "%v: .text is %+v", a, text)
		checkELFSymbols(t, im, f)
	}
}

func checkELFSymbols(t *testing.T, im *Image, f *stdelf.File) {
	t.Helper()
	symbols, err := f.Symbols()
	must.True(t, err == nil && len(symbols) == len(im.Funcs), "%v %v", err, len(symbols))
	for i := range im.Funcs {
		fn, s := &im.Funcs[i], symbols[i]
		expect.True(t, s.Name == fn.Name && s.Value == uint64(fn.RVA) && s.Size == uint64(fn.Size) &&
			stdelf.ST_TYPE(s.Info) == stdelf.STT_FUNC && f.Sections[s.Section].Name == ".text",
			"%s at %#x: %+v", fn.Name, fn.RVA, s)
	}
}

// TestELFIsRead: seedwalk's readers find the same in a file, in one without
// section headers, and in memory, and nothing wrong.
func TestELFIsRead(t *testing.T) {
	for _, a := range []Arch{AMD64, ARM64} {
		im := buildELF(t, a, elfFuncs(a)...)
		stripped := bytes.Clone(im.File)
		clear(stripped[40:48]) // e_shoff
		for name, open := range map[string]func() (*elf.File, error){
			"file":     func() (*elf.File, error) { return elf.New(im.File, "x") },
			"stripped": func() (*elf.File, error) { return elf.New(stripped, "x") },
			"memory":   func() (*elf.File, error) { return elf.FromMemory(im.File, im.Base, "x") },
		} {
			f, err := open()
			must.True(t, err == nil && len(f.Problems()) == 0 && len(f.BuildID()) == 40 &&
				f.Arch() == context.Arch(a)+1,
				"%v %v %v %v %v %v", a, name, err, f.Problems(), f.BuildID(), f.Arch())
			m := module.ELFFromFile(1, f, "x", im.Base, im.End(), im.Base)
			must.Equal(t, m.Err, nil, "%v %v", a, name)
			want := cfi.Stats{CIEs: 2, FDEs: len(im.Funcs) - 1, HeaderSize: len(im.Funcs) - 1}
			expect.Equal(t, m.CFI.Stats(), want, "%v %s", a, name)
			checkFDEs(t, im, m.CFI)
		}
	}
}

func checkFDEs(t *testing.T, im *Image, table *cfi.Table) {
	t.Helper()
	for i := range im.Funcs {
		fn := &im.Funcs[i]
		fde, why := table.Find(uint64(fn.RVA))
		if fn.NoInfo {
			expect.Equal(t, why, cfi.NoInfo, fn.Name)
			continue
		}
		expect.True(t, why == cfi.None && fde.Lo == uint64(fn.RVA) && fde.Hi == uint64(fn.End()) &&
			fde.Signal == (fn.Entry != Called), "%s at %#x: %v, %+v", fn.Name, fn.RVA, why, fde)
	}
}

// TestBuildIDs: other code or another name is another build.
func TestBuildIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"a", "b"} {
		for n := range 3 {
			im, err := Build(AMD64, ELF, name, 0, elfFuncs(AMD64)[n:])
			must.Do(t, err)
			f, err := elf.New(im.File, name)
			expect.True(t, err == nil && !seen[f.BuildID()],
				"%s without %d functions: %v, build id %s", name, n, err, f.BuildID())
			seen[f.BuildID()] = true
		}
	}
}

func TestEmptyELF(t *testing.T) {
	for _, a := range []Arch{AMD64, ARM64} {
		im := buildELF(t, a)
		f, err := elf.New(im.File, "x")
		must.True(t, err == nil && len(f.Problems()) == 0, "%v %v", err, f.Problems())
		m := module.ELFFromFile(1, f, "x", 0, im.End(), 0)
		expect.True(t, m.Err == nil, "%v", m.Err)
	}
}
