package managed

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// A hijack stub is a function that begins like one of HijackStubs; the same bytes elsewhere do not count.
func TestFindHijackStub(t *testing.T) {
	const start, lo, size = 0x7f0000000000, 0x40, 0x40
	cie, frames := elfasm.AMD64CIE(), elfasm.Frames{}
	frames.CIE(&cie)
	for i := range uint64(3) {
		frames.FDE(&cie, lo+i*size, size)
	}
	table := must.Get(cfi.Load(cfi.Sections{Arch: context.ArchAMD64,
		EHFrame: frames.Bytes(), EHFrameAddr: 0x100000}))(t)
	m := &module.Module{Start: start, End: start + 5*size, Bias: start, CFI: table}
	linux, windows := hijackStub(t, "linux", context.ArchAMD64), hijackStub(t, "windows", context.ArchAMD64)
	expect.Equal(t, FindHijackStub(&module.Module{Start: start}, linux), 0, "of a module without unwind data")
	for _, c := range []struct {
		name string
		code []byte
		at   int
		want uint64
	}{
		{"a function", linux, lo + size, start + lo + size},
		{"the last function, cut behind the bytes", linux, lo + 2*size, start + lo + 2*size},
		{"inside of a function", linux, lo + size + 1, 0},
		{"before all functions", linux, 0, 0},
		{"behind all functions", linux, lo + 3*size, 0},
		{"not all of it", linux[:len(linux)-1], lo, 0},
		{"that of Windows", windows, lo, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			code := append(make([]byte, c.at), c.code...)
			expect.Equal(t, FindHijackStub(m, code), c.want)
			twice := append(append(make([]byte, lo+4), linux...), make([]byte, 5*size)...)
			copy(twice[lo+size:], c.code)
			if got := FindHijackStub(m, twice); c.at == lo+size && got != c.want {
				t.Errorf("behind one that begins no function: %#x, want %#x", got, c.want)
			}
		})
	}
}

// hijackStub returns the code of a system's first stub with known code.
func hijackStub(t *testing.T, system string, a context.Arch) []byte {
	t.Helper()
	for i := range HijackStubs {
		if h := &HijackStubs[i]; h.System == system && h.Arch == a && len(h.Code) != 0 {
			return h.Code
		}
	}
	t.Fatalf("no stub of %s on %v", system, a)
	return nil
}

// OnHijackTripThread of .NET 10.0.9 for Linux on ARM64, and the beginning of another function of libcoreclr
// with the same frame size.
var (
	hijackARM64 = []uint32{
		0xa9b47bfd, 0x910003fd, 0xa90153f3, 0xa9025bf5, 0xa90363f7, 0xa9046bf9,
		0xa90573fb, 0xa90607e0, 0xf9003be2, 0xad0407e0, 0xad050fe2, 0x910003e0,
		0x97fca864, 0xa94607e0, 0xf9403be2, 0xad4407e0, 0xad450fe2, 0xa94153f3,
		0xa9425bf5, 0xa94363f7, 0xa9446bf9, 0xa94573fb, 0xa8cc7bfd, 0xd65f03c0,
	}
	otherARM64 = []uint32{0xa9b47bfd, 0x910003fd, 0xa90153f3, 0xf0001334, 0x910263f3,
		0xa90363f7, 0xaa0003f7, 0xaa0203f8}
)

// TestHijackStubARM64: the stub is recognized by its code, at each of its instructions, and no other function
// is. The walker steps out of it by its unwind data: the runtime has written the true return address into its
// frame record.
func TestHijackStubARM64(t *testing.T) {
	const start, stub, other, size, sp, ra, calls = 0x7f0000000000, 0x1000, 0x1100, 24 * 4,
		0x7e0000001000, 0x7d0000001234, 12 * 4
	text := make([]byte, 0x200)
	for at, words := range map[int][]uint32{0: hijackARM64, other - stub: otherARM64} {
		for i, w := range words {
			binary.LittleEndian.PutUint32(text[at+4*i:], w)
		}
	}
	cie, frames := elfasm.ARM64CIE(), elfasm.Frames{}
	frames.CIE(&cie)
	// The row after the prolog: CFA = SP+192, x29 at CFA-192, x30 at CFA-184.
	frames.FDE(&cie, stub, size, 0x44, 0x0e, 0xc0, 0x01, 0x80|29, 24, 0x80|30, 23)
	frames.FDE(&cie, other, size, 0x44, 0x0e, 0xc0, 0x01, 0x80|29, 24, 0x80|30, 23)
	table := must.Get(cfi.Load(cfi.Sections{Arch: context.ArchARM64,
		EHFrame: frames.Bytes(), EHFrameAddr: 0x100000}))(t)
	file := must.Get(elf.New(elfasm.Code(elfasm.ARM64, stub, text), "libcoreclr.so"))(t)
	m := module.Module{Start: start, End: start + 0x2000, Bias: start, CFI: table, ELF: file}
	u := NewWalker(context.ArchARM64)
	u.SetTable(module.NewTable(1, []module.Module{m}, nil))
	in := u.(interface{ InReturnHook(unwind.Address) bool }).InReturnHook
	for off := uint64(0); off < size; off += 4 {
		expect.True(t, in(unwind.Instruction(start+stub+off)), "instruction %d is not in the stub", off/4)
	}
	for name, at := range map[string]unwind.Address{
		"another function":                       unwind.Instruction(start + other + 8),
		"behind it":                              unwind.Instruction(start + stub + size),
		"no module":                              unwind.Instruction(start - 8),
		"the return address of a call before it": unwind.ReturnAddress(start + stub),
	} {
		expect.True(t, !in(at), "%s is taken for the stub", name)
	}
	stack := make([]byte, 256)
	binary.LittleEndian.PutUint64(stack, 0xf00)
	binary.LittleEndian.PutUint64(stack[8:], ra)
	regs := context.FromARM64(context.ARM64{PC: start + stub + calls + 4, Sp: sp, Known: context.ARM64All})
	s, f := unwind.State{Regs: &regs, Trust: unwind.TrustContext}, unwind.Frame{}
	stop := u.Step(&s, memory.New(memory.Run{Addr: sp, Data: stack}), nil, &f)
	expect.True(t, stop == unwind.StopNone && regs.IP() == ra && regs.SP() == sp+192 && regs.FP() == 0xf00,
		"left to %#x/%#x: %v", regs.IP(), regs.SP(), stop)
	expect.Equal(t, FindHijackStub(&m, append(make([]byte, stub), text...)), start+stub, "found at")
}

// stubCLRs are the pinned runtimes of ELF that HijackStubs has rows for.
var stubCLRs = map[string]string{
	"9.0.5":            ".cache/dotnet-9.0.5/package/dist/libcoreclr.so",
	"10.0.9":           ".cache/dotnet-10.0.9/package/dist/azmcp",
	"10.0.9 for ARM64": ".cache/dotnet-10.0.9-arm64/package/dist/azmcp",
}

const stubCLRWindows = ".cache/dotnet-10.0.9-win/package/dist/azmcp.exe"

// Every pinned runtime that needs a row has one: its stub begins a function. A new release whose stub begins
// differently fails here.
func TestHijackStubsOfRealCLRs(t *testing.T) {
	for name, path := range stubCLRs {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Skipf("SKIPPED-CHECK: %s is missing; run make runtime", path)
			}
			expect.True(t, hasStub(t, filepath.Join(root, path)), "no row of HijackStubs is of this runtime: add one with the first instructions of OnHijackTripThread")
		})
	}
	t.Run("10.0.9 for Windows", func(t *testing.T) {
		f, found := open(t, filepath.Join(root, stubCLRWindows)), 0
		code := hijackStub(t, "windows", context.ArchAMD64)
		for i := range f.AMD64().Len() {
			if bytes.HasPrefix(f.Tail(f.AMD64().Entry(i).Begin, len(code)), code) {
				found++
			}
		}
		expect.Equal(t, found, 1, "functions that begin as the row says")
	})
}

// Each row with code belongs to a pinned runtime. So the tests find a wrong byte in it.
func TestHijackStubsHaveRuntimes(t *testing.T) {
	all := HijackStubs
	defer func() { HijackStubs = all }()
	for _, h := range all {
		if len(h.Code) == 0 {
			continue
		}
		HijackStubs = []HijackStub{h}
		found := false
		for _, path := range stubCLRs {
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Skipf("SKIPPED-CHECK: %s is missing; scripts/packages.txt has its package", path)
			}
			found = found || hasStub(t, filepath.Join(root, path))
		}
		if h.PE {
			found = FindHijackStubPE(open(t, filepath.Join(root, stubCLRWindows)), 0) != 0
		}
		if !found {
			t.Errorf("the row of .NET %s for %s on %v is of no pinned runtime: add one to scripts/packages.txt "+
				"and its path to stubCLRs", h.Releases, h.System, h.Arch)
		}
	}
}

// hasStub reports whether an ELF file has a stub of HijackStubs.
func hasStub(t *testing.T, path string) bool {
	t.Helper()
	m := module.LoadELF(1, path, 0, 0, 0)
	must.Do(t, m.Err)
	for _, s := range m.ELF.Segments() {
		m.Start, m.Bias = s.Vaddr, 0
		code := m.ELF.Tail(s.Vaddr, int(s.Filesz))
		if s.Executable() && FindHijackStub(&m, code) != 0 {
			r := FindRestore(&m, code)
			if amd64 := m.CFI.Arch() == context.ArchAMD64; amd64 != (r.End-r.Start == 0x99) {
				t.Errorf("restoreBegin and restoreEnd find %+v: compare ClrRestoreNonvolatileContextWorker", r)
			}
			return true
		}
	}
	return false
}

// The throw helpers of real CLRs begin as in throwHelpers, and no other function does.
func TestThrowHelpers(t *testing.T) {
	for _, c := range []struct {
		name, path string
		want       int
	}{
		{"2.0.0", ".cache/dotnet-2.0.0-win/package/shared/Microsoft.NETCore.App/2.0.0/coreclr.dll", 2},
		{"2.2.2", ".cache/dotnet-2.2.2-win/package/shared/Microsoft.NETCore.App/2.2.2/coreclr.dll", 2},
		{"10.0.9", ".cache/dotnet-10.0.9-win/package/dist/azmcp.exe", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, n := open(t, filepath.Join(root, c.path)), 0
			for i := range f.AMD64().Len() {
				if code := throwHelpers[0].Code; bytes.HasPrefix(f.Tail(f.AMD64().Entry(i).Begin,
					len(code)), code) {
					n++
				}
			}
			expect.Equal(t, n, c.want, "number of functions")
		})
	}
}
