package dump

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/buf"
	"github.com/seedwalk/seedwalk/process/live"
)

// Error reports why a file cannot be read as a core.
type Error struct {
	Why  Why
	What string
}

// Why is the kind of an Error.
type Why uint8

const (
	NotELF     Why = iota // not an ELF file
	NotCore               // an ELF file of another type
	OtherArch             // of an unsupported machine
	Truncated             // the file is shorter than its headers say
	NoThreads             // the core has no registers
	NoMappings            // the core has no memory
	Malformed
	Compressed
	Minidump // a dump of another system
)

func (e *Error) Error() string { return e.What }

// Remedy is what a user can do about the error.
func (w Why) Remedy() string {
	switch w {
	case NotELF, NotCore:
		return "name a core of the kernel, of gcore, or of createdump --full"
	case OtherArch:
		return "use a debugger for that machine"
	case Compressed:
		return "decompress it first, for example with zstd -d, gzip -d, or coredumpctl dump"
	case Minidump:
		return "only cores of Linux can be read; use a debugger for that system, such as WinDbg"
	case Truncated, NoThreads, NoMappings:
		return "write the core again, with enough room on the disk and ulimit -c unlimited"
	}
	return "write the core again, for example with gcore"
}

// Thread is one thread of a core. The first thread of a core is the one that crashed.
type Thread struct {
	TID     uint32
	Signal  int    // signal that stopped the thread, or that ended the process
	Told    bool   // the core has the siginfo_t of that signal for this thread
	Faulted bool   // Fault is known
	Fault   uint64 // address that a signal of the kernel is about
	Regs    context.Registers
	live.Stood
}

// File is a mapped part of a file (NT_FILE).
type File struct {
	Start, End, Offset uint64
	Path               string
}

// Core is a core file.
type Core struct {
	Arch     context.Arch
	PID      uint32
	Name     string // the kernel's short name of the process
	Threads  []Thread
	Files    []File
	VDSO     uint64 // address of the kernel's image, 0 if unknown
	Problems []error

	data     []byte
	segments []segment
	stack    uint64 // an address on the main thread's stack, 0 if unknown
	noted    uint64 // bytes of notes read: many headers can refer to the same notes
	pageSize uint64 // of the process (AT_PAGESZ)
}

// segment is a range of memory whose first bytes are in the file.
type segment struct {
	start, end uint64
	off, size  uint64 // in the file
	exec       bool
}

// Limits for reading a core.
const (
	maxHeaders  = 1 << 20
	maxThreads  = 1 << 16
	maxFiles    = 1 << 18
	maxProblems = 100
	leastPage   = 4 << 10 // bytes; ARM64 has pages of 4, 16, and 64 KiB
	largestPage = 64 << 10
)

// Machines and types of ELF files.
const (
	typeCore   = 4
	machineX64 = 62
	machineARM = 183
	ptLoad     = 1
	ptNote     = 4
	manyPh     = 0xffff
)

// New reads a core from its bytes and keeps a reference to them. The error is an *Error.
// The Core holds what could be read before the error, or is nil.
func New(data []byte) (*Core, error) {
	c := &Core{data: data, pageSize: leastPage}
	phoff, phentsize, phnum, err := c.header()
	if err != nil {
		return nil, err
	}
	for i := uint64(0); i < min(phnum, maxHeaders); i++ {
		at := phoff + i*phentsize
		r := buf.At(data, at)
		typ, flags := r.U32(), r.U32()
		off, vaddr := r.U64(), r.U64()
		r.Skip(8)
		filesz, memsz := r.U64(), r.U64()
		if !r.OK() || at < phoff {
			c.problem(Truncated, "program header %d of %d is outside the file", i, phnum)
			break
		}
		switch typ {
		case ptLoad:
			c.load(vaddr, memsz, off, filesz, flags&1 != 0)
		case ptNote:
			c.notes(off, filesz)
		}
	}
	sort.SliceStable(c.segments, func(i, j int) bool { return c.segments[i].start < c.segments[j].start })
	sort.SliceStable(c.Files, func(i, j int) bool { return c.Files[i].Start < c.Files[j].Start })
	sort.SliceStable(c.Threads, func(i, j int) bool {
		return c.Threads[i].Fatal() != "" && c.Threads[j].Fatal() == ""
	})
	switch {
	case len(c.Threads) == 0:
		return c, c.because(NoThreads, "the core has no thread's registers")
	case len(c.segments) == 0:
		return c, c.because(NoMappings, "the core has no memory")
	}
	return c, nil
}

// because returns an Error with a description of the damage.
func (c *Core) because(why Why, what string) error {
	if len(c.Problems) > 0 {
		what += ": " + c.Problems[0].Error()
	}
	return &Error{why, what}
}

// foreign lists files that users take for cores, by their first bytes.
var foreign = []struct {
	magic string
	why   Why
	what  string
}{
	{"\x1f\x8b", Compressed, "it is compressed with gzip"},
	{"\x28\xb5\x2f\xfd", Compressed, "it is compressed with zstd"},
	{"\xfd7zXZ\x00", Compressed, "it is compressed with xz"},
	{"\x04\x22\x4d\x18", Compressed, "it is compressed with lz4"},
	{"BZh", Compressed, "it is compressed with bzip2"},
	{"PK\x03\x04", Compressed, "it is a zip archive"},
	{"MDMP", Minidump, "it is a minidump of Windows"},
	{"\xcf\xfa\xed\xfe", Minidump, "it is a Mach-O file of macOS"},
}

func (c *Core) header() (phoff, phentsize, phnum uint64, err error) {
	d := c.data
	for _, f := range foreign {
		if bytes.HasPrefix(d, []byte(f.magic)) {
			return 0, 0, 0, &Error{f.why, f.what}
		}
	}
	if len(d) < 64 || string(d[:4]) != "\x7fELF" {
		return 0, 0, 0, &Error{NotELF, "it is not an ELF file"}
	}
	if d[4] != 2 || d[5] != 1 {
		return 0, 0, 0, &Error{OtherArch, "it is not of a 64-bit little-endian machine"}
	}
	le := binary.LittleEndian
	if t := le.Uint16(d[16:]); t != typeCore {
		return 0, 0, 0, &Error{NotCore,
			fmt.Sprintf("it is an ELF file of type %d, and a core has type %d", t, typeCore)}
	}
	switch m := le.Uint16(d[18:]); m {
	case machineX64:
		c.Arch = context.ArchAMD64
	case machineARM:
		c.Arch = context.ArchARM64
	default:
		return 0, 0, 0, &Error{OtherArch,
			fmt.Sprintf("it is of ELF machine %d; x86-64 (%d) and ARM64 (%d) are read", m, machineX64,
				machineARM)}
	}
	phoff, phentsize, phnum = le.Uint64(d[32:]), uint64(le.Uint16(d[54:])), uint64(le.Uint16(d[56:]))
	if phentsize < 56 {
		return 0, 0, 0, &Error{Malformed,
			fmt.Sprintf("its program headers have %d bytes, less than 56", phentsize)}
	}
	if phnum == manyPh { // the count is in section 0
		r := buf.At(d, le.Uint64(d[40:]))
		r.Skip(44)
		if n := uint64(r.U32()); r.OK() && n > 0 {
			phnum = n
		}
	}
	return phoff, phentsize, phnum, nil
}

// load adds a segment. If the file ends inside the segment, load keeps the part that is there.
func (c *Core) load(vaddr, memsz, off, filesz uint64, exec bool) {
	if vaddr+memsz < vaddr || memsz == 0 {
		if memsz != 0 {
			c.problem(Malformed, "the memory at %#x has %d bytes and wraps", vaddr, memsz)
		}
		return
	}
	filesz = min(filesz, memsz)
	if n := uint64(len(c.data)); off > n || filesz > n-off {
		c.problem(Truncated, "the file has only %d of the %d bytes of memory at %#x", n-min(off, n),
			filesz, vaddr)
		off = min(off, n)
		filesz = n - off
	}
	c.segments = append(c.segments, segment{vaddr, vaddr + memsz, off, filesz, exec})
}

func (c *Core) problem(why Why, format string, args ...any) {
	if len(c.Problems) < maxProblems {
		c.Problems = append(c.Problems, &Error{why, fmt.Sprintf(format, args...)})
	}
}
