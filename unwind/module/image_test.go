package module

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/peasm"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// foreign is an image of a format that this package does not know.
type foreign struct{}

func (foreign) Bytes(at uint64, n int) []byte { return []byte{byte(at)} }
func (foreign) CFIBase() uint64               { return 0x100 }
func (foreign) Starts(at uint64) bool         { return at == 0x20 }
func (foreign) Entry() (uint64, bool)         { return 0x30, true }
func (foreign) SystemV() bool                 { return true }

// TestImage: a module asks its image, whatever its format. Without an image it has no answers.
func TestImage(t *testing.T) {
	m := Module{Bias: 0x1000, Image: foreign{}}
	b := m.Bytes(0x1042, 8)
	expect.True(t, len(b) == 1 && b[0] == 0x42, "bytes %v", b)
	at, ok := m.Entry()
	expect.True(t, ok && at == 0x1030 && m.CFIBias() == 0xf00 && m.SystemV() && m.Starts(0x1020) &&
		!m.Starts(0x1021), "entry %#x %v, CFI at %#x", at, ok, m.CFIBias())
	none := Module{Bias: 0x1000}
	_, ok = none.Entry()
	expect.True(t, !ok && none.Bytes(0x1000, 8) == nil && none.CFIBias() == 0x1000 && !none.SystemV() &&
		!none.Starts(0x1000), "a module without an image answers")
}

// A PE image's answers about its functions and bytes.
func TestPEImage(t *testing.T) {
	entry := []byte{0, 0x10, 0, 0, 0, 0x20, 0, 0, 0, 0x30, 0, 0}
	f := pe.FromBlocks(pe.MachineAMD64, entry,
		[]pe.Block{{RVA: 0x1000, Data: []byte{1, 2, 3}}, {RVA: 0x3000, Data: []byte{1, 0, 0, 0}}})
	m := Module{Bias: 0x7000_0000, PE: f}
	b := m.Bytes(0x7000_1001, 8)
	expect.True(t, len(b) == 2 && b[0] == 2, "bytes %v", b)
	for addr, want := range map[uint64]bool{0x7000_1000: true, 0x7000_1001: false,
		0x8_7000_1000: false, 0x1000: false} {
		expect.True(t, m.Starts(addr) == want, "%#x: starts %v", addr, !want)
	}
	expect.True(t, !m.SystemV() && m.Bytes(0x8_7000_1000, 8) == nil,
		"a PE image of more than 4 GiB, or of System V")
	n := testing.AllocsPerRun(10,
		func() { m.Bytes(0x7000_1000, 2); m.Starts(0x7000_1000); m.CFIBias() })
	expect.True(t, n == 0, "%v allocations", n)
}

func TestLoadELF(t *testing.T) {
	const libc = "/lib/x86_64-linux-gnu/libc.so.6"
	if _, err := os.Stat(libc); err != nil {
		t.Skip("SKIPPED-CHECK: no x86-64 libc on this host")
	}
	m := LoadELF(7, libc, 0x1000, 0x2000, 0x1000)
	must.True(t, m.Err == nil && m.ID == 7 && m.Start == 0x1000 && m.End == 0x2000 && m.Bias == 0x1000 &&
		m.Path == libc, "%+v", m)
	expect.True(t, m.CFI != nil && m.CFI.Len() >= 1000 && m.CFI.Arch() == context.ArchAMD64 &&
		m.BuildID != "", "no frames or no build id: %q", m.BuildID)
}

func TestLoadELFFails(t *testing.T) {
	dir := tempdir.New(t)
	text := filepath.Join(dir, "text")
	must.Do(t, os.WriteFile(text, []byte("not an image"), 0o600))
	for _, path := range []string{text, filepath.Join(dir, "none"), dir} {
		m := LoadELF(1, path, 16, 32, 0)
		expect.True(t, m.Err != nil && m.CFI == nil && m.ELF == nil && m.Start == 16 && m.End == 32,
			"%s: %+v", path, m)
	}
}

const (
	peTestBase = peasm.Base
	peTestLoad = 0x7ff0_0000_0000
)

// writePE writes an image of SizeOfImage 3000h with one section, .eh_frame at
// RVA 1000h, whose pointers are relative to their own addresses.
func writePE(t *testing.T, machine uint16, frame []byte) string {
	t.Helper()
	s := peasm.Raw(".eh_frame", 0x1000, frame[:len(frame):len(frame)])
	s.Goto(0x1200)
	s.Virtual = uint32(len(frame))
	im := peasm.File{Machine: machine, Sections: []*peasm.Section{s}, Size: 0x3000}
	path := filepath.Join(tempdir.New(t), "a.dll")
	must.Do(t, os.WriteFile(path, im.Bytes(), 0o600))
	return path
}

// mingwFrame is one function at RVA 2000h, 40h bytes: pcrel, as the GNU
// compilers write it.
func mingwFrame() []byte {
	le := binary.LittleEndian
	b := []byte{20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0}
	b = append(b, 20, 0, 0, 0, 28, 0, 0, 0)
	b = le.AppendUint32(b, 0x2000-(0x1000+uint32(len(b))))
	b = le.AppendUint32(b, 0x40)
	return append(b, 0, 0x41, 0x0e, 16, 0, 0, 0, 0, 0, 0, 0, 0)
}

func TestLoadPE(t *testing.T) {
	path := writePE(t, 0x8664, mingwFrame())
	m := LoadPE(7, path, peTestLoad, 0)
	must.True(t, m.Err == nil && m.PE != nil && m.ID == 7 && m.Start == peTestLoad &&
		m.End == peTestLoad+0x3000 && m.Bias == peTestLoad && m.BuildID == "", "%+v", m)
	must.True(t, m.CFI != nil, "the .eh_frame of a PE image is not loaded")
	for rva, want := range map[uint64]cfi.Reason{0x2000: cfi.None, 0x203f: cfi.None,
		0x2040: cfi.NoInfo, 0x1fff: cfi.NoInfo} {
		_, why := m.CFI.Find(rva + m.PE.ImageBase())
		expect.True(t, why == want, "%#x: %v, want %v", rva, why, want)
	}
	m = LoadPE(7, path, peTestLoad, peTestLoad+0x1000)
	expect.True(t, m.End == peTestLoad+0x1000, "end %#x, want the caller's", m.End)
}

// TestLoadPEOther: an image of an architecture that is not read has no tables,
// but its range is known.
func TestLoadPEOther(t *testing.T) {
	m := LoadPE(1, writePE(t, 0x14c, mingwFrame()), peTestLoad, 0)
	expect.True(t, m.Err == nil && m.CFI == nil && m.End == peTestLoad+0x3000, "%+v", m)
	m = LoadPE(1, filepath.Join(tempdir.New(t), "none"), peTestLoad, peTestLoad+0x1000)
	expect.True(t, m.Err != nil && m.PE == nil && m.End == peTestLoad+0x1000, "%+v", m)
}

func TestSameModules(t *testing.T) {
	base := Module{ID: 1, Start: 0x1000, End: 0x2000, Bias: 0x800, ELF: new(elf.File),
		CFI: new(cfi.Table), PE: new(pe.File)}
	other := Module{ID: 2, Start: 0x3000, End: 0x4000}
	was := NewTable(1, []Module{base, other}, nil)
	for _, c := range []struct {
		name   string
		change func(m *Module)
		same   bool
	}{
		{"nothing", func(*Module) {}, true},
		{"ID", func(m *Module) { m.ID++ }, false},
		{"start", func(m *Module) { m.Start++ }, false},
		{"end", func(m *Module) { m.End++ }, false},
		{"bias", func(m *Module) { m.Bias++ }, false},
		{"ELF image read again", func(m *Module) { m.ELF = new(elf.File) }, false},
		{"PE image read again", func(m *Module) { m.PE = new(pe.File) }, false},
		{"unwind data read again", func(m *Module) { m.CFI = new(cfi.Table) }, false},
		{"frame pointers", func(m *Module) { m.FramePointers = true }, false},
		{"another format", func(m *Module) { m.Image = noImage{} }, false},
	} {
		m := base
		c.change(&m)
		now := NewTable(2, []Module{other, m}, []memory.Range{{Start: 1, End: 2}})
		expect.True(t, was.SameModules(now) == c.same && now.SameModules(was) == c.same,
			"%s: same must be %v", c.name, c.same)
	}
	expect.True(t, !was.SameModules(NewTable(2, []Module{base}, nil)), "a module fewer is the same")
}

// Foreign JIT ranges are in the table that was made with them, and no other.
func TestWithJIT(t *testing.T) {
	was := NewTable(7, nil, []memory.Range{{Start: 0x100, End: 0x200}})
	ranges := []memory.Range{{Start: 0x3000, End: 0x4000}, {Start: 0x1000, End: 0x2000}}
	now := was.WithJIT(ranges)
	ranges[0] = memory.Range{Start: 1, End: 1 << 62} // the table has a copy
	for addr, want := range map[uint64]bool{0xfff: false, 0x1000: true, 0x1fff: true, 0x2000: false,
		0x3000: true, 0x4000: false, 0x150: false} {
		expect.True(t, now.IsJIT(addr) == want && !was.IsJIT(addr),
			"%#x: %v, want %v", addr, now.IsJIT(addr), want)
	}
	expect.True(t, now.Generation() == 7 && now.IsManaged(0x150), "the rest of the table changed")
}
