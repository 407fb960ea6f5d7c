package dump

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

var le = binary.LittleEndian

// What the tests damage in a core.
const (
	atType, atMachine, atPhnum = 16, 18, 56
	atLoad                     = 64 + 56
)

// testCore is a core with two threads, three segments of memory, and two files.
func testCore() []byte {
	c := elfasm.Core{Machine: 62, Parts: []elfasm.CorePart{
		{Flags: 5, Addr: 0x5000, Size: 0x1000, Data: []byte("the first bytes")},
		{Flags: 6, Addr: 0x9000, Size: 0x1000, Data: []byte("a stack")},
		{Flags: 5, Addr: 0xa000, Size: 0x1000},
	}}
	for tid := uint32(100); tid < 102; tid++ {
		regs := make([]uint64, 27)
		regs[16], regs[19], regs[21] = 0x5000+uint64(tid), 0x9000, 0x9f00 // rip, rsp, fs_base
		c.Thread(tid, 11, regs...)
	}
	c.Process(100, "victim")
	c.Note(6, le.AppendUint64(le.AppendUint64(nil, 33), 0xa000)) // NT_AUXV
	c.Files(elfasm.CoreFile{Start: 0x5000, End: 0x6000, Offset: 1, Path: "/lib/a"},
		elfasm.CoreFile{Start: 0x7000, End: 0x8000, Path: "/lib/b"})
	return c.Bytes()
}

func TestCore(t *testing.T) {
	c, err := New(testCore())
	must.True(t, err == nil && len(c.Problems) == 0, "%v %v", err, c.Problems)
	expect.True(t, c.PID == 100 && c.Name == "victim" && c.Arch == context.ArchAMD64 && len(c.Threads) == 2 &&
		c.VDSO == 0xa000, "%+v", c)
	th := c.Threads[1]
	expect.True(t, th.TID == 101 && th.Signal == 11 && th.Regs.IP() == 0x5065 && th.Regs.SP() == 0x9000 &&
		th.Base == 0x9f00, "%+v", th)
	want := []live.Mapping{
		{Start: 0x5000, End: 0x6000, Offset: 0x1000, Exec: true, Path: "/lib/a"},
		{Start: 0x7000, End: 0x8000, Exec: true, Path: "/lib/b"},
		{Start: 0x9000, End: 0xa000},
		{Start: 0xa000, End: 0xb000, Exec: true, Path: "[vdso]"},
	}
	got := c.Maps()
	expect.True(t, slices.Equal(got, want), "\n got %+v\nwant %+v", got, want)
	for _, r := range []struct {
		addr uint64
		n    int
		want string
	}{{0x5004, 5, "first"}, {0x5004, 100, "first bytes"}, {0x9000, 7, "a stack"}, {0x9007, 1, ""},
		{0xa000, 1, ""}, {0x7000, 1, ""}, {0, 1, ""}, {^uint64(0), 1, ""}} {
		p := make([]byte, r.n)
		n := c.ReadSome(p, r.addr)
		expect.True(t, string(p[:n]) == r.want, "%d bytes at %#x: %q", r.n, r.addr, p[:n])
	}
}

// A thread of ARM64 has its thread pointer in a separate note after its registers.
func TestThreadPointerARM64(t *testing.T) {
	pointer := func(v uint64) []byte { return le.AppendUint64(nil, v) }
	status := make([]byte, 392)
	for _, c := range []struct {
		name  string
		arch  context.Arch
		notes [][]byte
		want  []uint64
	}{
		{"each its own", context.ArchARM64,
			[][]byte{elfasm.Note("CORE", 1, status), elfasm.Note("LINUX", 0x401, pointer(0x7000)),
				elfasm.Note("CORE", 1, status), elfasm.Note("LINUX", 0x401, pointer(0x8000))},
			[]uint64{0x7000, 0x8000}},
		{"none", context.ArchARM64,
			[][]byte{elfasm.Note("CORE", 1, status), elfasm.Note("LINUX", 0x400, pointer(0x7000))},
			[]uint64{0}},
		{"with a second register", context.ArchARM64,
			[][]byte{elfasm.Note("CORE", 1, status),
				elfasm.Note("LINUX", 0x401, append(pointer(0x7000), pointer(9)...))}, []uint64{0x7000}},
		{"cut", context.ArchARM64,
			[][]byte{elfasm.Note("CORE", 1, status), elfasm.Note("LINUX", 0x401, pointer(0x7000)[:4])},
			[]uint64{0}},
		{"of no thread", context.ArchARM64, [][]byte{elfasm.Note("LINUX", 0x401, pointer(0x7000))}, nil},
		{"of another owner", context.ArchARM64,
			[][]byte{elfasm.Note("CORE", 1, status), elfasm.Note("CORE", 0x401, pointer(0x7000))},
			[]uint64{0}},
		{"of x86-64", context.ArchAMD64,
			[][]byte{elfasm.Note("CORE", 1, status), elfasm.Note("LINUX", 0x401, pointer(0x7000))},
			[]uint64{0}},
	} {
		core := &Core{Arch: c.arch, data: slices.Concat(c.notes...)}
		core.notes(0, uint64(len(core.data)))
		var got []uint64
		for _, th := range core.Threads {
			got = append(got, th.Base)
		}
		expect.True(t, slices.Equal(got, c.want) && len(core.Problems) == 0,
			"%s: %#x, want %#x, %v", c.name, got, c.want, core.Problems)
	}
}

// Each kind of damage has its reason, and everything readable is kept.
func TestCoreDamaged(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(b []byte) []byte
		fatal  bool
		why    Why
		says   string
	}{
		{"empty", func(b []byte) []byte { return nil }, true, NotELF, "not an ELF file"},
		{"text", func(b []byte) []byte { return []byte(strings.Repeat("text", 100)) }, true,
			NotELF, "not an ELF file"},
		{"32 bit", func(b []byte) []byte { b[4] = 1; return b }, true, OtherArch, "64-bit"},
		{"program", func(b []byte) []byte { b[atType] = 2; return b }, true, NotCore, "type 2"},
		{"other machine", func(b []byte) []byte { b[atMachine] = 40; return b },
			true, OtherArch, "machine 40"},
		{"small program headers", func(b []byte) []byte { b[54] = 8; return b }, true, Malformed, "8 bytes"},
		{"no notes", func(b []byte) []byte { le.PutUint32(b[64:], 0); return b },
			true, NoThreads, "registers"},
		{"no memory", func(b []byte) []byte { b[atPhnum] = 1; return b }, true, NoMappings, "no memory"},
		{"cut in headers", func(b []byte) []byte { return b[:100] }, true, NoThreads, "outside the file"},
		{"cut in notes", func(b []byte) []byte { return b[:64+4*56+500] }, false, Truncated,
			"only 500 of the 1116 bytes of notes at 0x120"},
		{"cut in memory", func(b []byte) []byte { return b[:len(b)-3] }, false, Truncated,
			"the file has only 4"},
		{"memory wraps", func(b []byte) []byte { le.PutUint64(b[atLoad+40:], ^uint64(0)); return b }, false,
			Malformed, "wraps"},
		{"memory far outside", func(b []byte) []byte { le.PutUint64(b[atLoad+8:], 1<<63); return b },
			false, Truncated, "the file has only 0"},
		{"huge note", func(b []byte) []byte { le.PutUint32(b[64+4*56+4:], 1<<31); return b }, true,
			NoThreads, "outside the notes"},
		{"the same notes twice", func(b []byte) []byte { copy(b[atLoad+2*56:], b[64:64+56]); return b },
			false, Malformed, "more notes than"},
		{"many files", func(b []byte) []byte { return damageFiles(b, 0, 1<<60) },
			false, Malformed, "mapped files"},
		{"an empty file", func(b []byte) []byte { return damageFiles(b, 3, 0x5000) },
			false, Malformed, `the mapping of "/lib/a"`},
	} {
		got, err := New(c.damage(testCore()))
		var e *Error
		switch {
		case c.fatal && (!errors.As(err, &e) || e.Why != c.why || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v", c.name, err)
		case !c.fatal && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case !c.fatal && (len(got.Problems) == 0 || !errors.As(got.Problems[0], &e) || e.Why != c.why ||
			!strings.Contains(e.What, c.says)):
			t.Errorf("%s: %v", c.name, got.Problems)
		case !c.fatal && len(got.Threads) == 0:
			t.Errorf("%s: no threads are left", c.name)
		case c.name == "an empty file" && (len(got.Files) != 1 || got.Files[0].Path != "/lib/b"):
			t.Errorf("%s: the other is lost: %v", c.name, got.Files)
		}
	}
}

// A segment has no more bytes than its memory, whatever its size in the file.
func TestSegmentInFile(t *testing.T) {
	b := testCore()
	le.PutUint64(b[atLoad+40:], 4)
	c, err := New(b)
	must.Do(t, err)
	p := make([]byte, 8)
	expect.Equal(t, c.ReadSome(p, 0x5000), 4, "bytes")
	expect.Equal(t, c.ReadSome(p, 0x5004), 0, "bytes after the segment")
}

// damageFiles sets a word of the list of files: the count, the unit, and then the start, the end, and the
// offset of each.
func damageFiles(b []byte, word int, to uint64) []byte {
	for i := 0; i+4 < len(b); i += 4 {
		if le.Uint32(b[i:]) == 0x46494c45 {
			le.PutUint64(b[i+12+8*word:], to)
		}
	}
	return b
}

// The page of a thread's instruction pointer is code, whatever its segment says.
func TestMapsAtThreads(t *testing.T) {
	at := func(start, end uint64) live.Mapping { return live.Mapping{Start: start, End: end} }
	code := func(start, end uint64) live.Mapping { return live.Mapping{Start: start, End: end, Exec: true} }
	for _, c := range []struct {
		name string
		ips  []uint64
		want []live.Mapping
	}{
		{"elsewhere", []uint64{0x1000, 0xa000}, []live.Mapping{at(0x5000, 0x9000)}},
		{"in the first page", []uint64{0x5fff}, []live.Mapping{code(0x5000, 0x6000), at(0x6000, 0x9000)}},
		{"in the last page", []uint64{0x8000}, []live.Mapping{at(0x5000, 0x8000), code(0x8000, 0x9000)}},
		{"two in one page, one in another", []uint64{0x7010, 0x6008, 0x6000},
			[]live.Mapping{at(0x5000, 0x6000), code(0x6000, 0x7000), code(0x7000, 0x8000),
				at(0x8000, 0x9000)}},
	} {
		core := elfasm.Core{Machine: 62, Parts: []elfasm.CorePart{{Addr: 0x5000, Size: 0x4000, Flags: 6}}}
		for i, ip := range c.ips {
			regs := make([]uint64, 27)
			regs[16] = ip
			core.Thread(100+uint32(i), 11, regs...)
		}
		got := must.Get(New(core.Bytes()))(t).Maps()
		expect.True(t, slices.Equal(got, c.want), "%s: %+v", c.name, got)
	}
}

// A core begins with the thread that a signal of a crash has ended, with the address of the fault.
func TestCrash(t *testing.T) {
	const unknown = 1
	info := func(signal uint32, code int32, at uint64) []byte {
		b := le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, signal), 0), uint32(code))
		return append(le.AppendUint64(le.AppendUint32(b, 0), at), make([]byte, 104)...)
	}
	for _, c := range []struct {
		name   string
		signal uint16
		info   []byte
		want   string
		fault  uint64
	}{
		{"a fault", 11, info(11, 1, 0x1234567), "SIGSEGV", 0x1234567},
		{"a fault at address 0", 11, info(11, 1, 0), "SIGSEGV", 0},
		{"a fault without an address", 11, info(11, 128, 0x1234567), "SIGSEGV", unknown},
		{"sent by a process", 11, info(11, -6, 0x1234567), "SIGSEGV", unknown},
		{"an abort", 6, info(6, -6, 0x1234567), "SIGABRT", unknown},
		{"of another signal", 11, info(7, 1, 0x1234567), "", unknown},
		{"cut off", 11, info(11, 1, 0x1234567)[:20], "", unknown},
		{"no siginfo", 11, nil, "", unknown},
		{"stopped by gcore", 5, info(5, 1, 0x1234567), "", unknown},
	} {
		core := elfasm.Core{Machine: 62, Parts: []elfasm.CorePart{{Addr: 0x5000, Size: 0x4000, Flags: 6}}}
		core.Thread(100, 0, make([]uint64, 27)...)
		core.Thread(101, c.signal, make([]uint64, 27)...)
		if c.info != nil {
			core.Note(0x53494749, c.info)
		}
		core.Thread(102, 0, make([]uint64, 27)...)
		got := must.Get(New(core.Bytes()))(t).Threads
		first := got[0]
		for _, th := range got {
			if th.TID == 101 {
				expect.True(t, th.Fatal() == c.want && th.Faulted == (c.fault != unknown) &&
					(!th.Faulted || th.Fault == c.fault),
					"%s: %q at %#x", c.name, th.Fatal(), th.Fault)
			}
		}
		expect.True(t, (first.TID == 101) == (c.want != ""), "%s: thread %d is first", c.name, first.TID)
	}
}

// A file that is no core of Linux gets a message that names its kind.
func TestForeign(t *testing.T) {
	for magic, says := range map[string]string{"\x1f\x8b\x08": "gzip", "\x28\xb5\x2f\xfd": "zstd",
		"\xfd7zXZ\x00": "xz", "\x04\x22\x4d\x18": "lz4", "MDMP\x93\xa7": "minidump of Windows",
		"hello": "not an ELF file"} {
		_, err := New([]byte(magic + strings.Repeat("\x00", 100)))
		expect.True(t, err != nil && strings.Contains(err.Error(), says), "%q: %v", magic, err)
	}
}
