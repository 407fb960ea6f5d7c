package dump

import (
	"bytes"
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/buf"
	"github.com/seedwalk/seedwalk/process/live"
)

// Types of a core's notes (Linux include/uapi/linux/elf.h).
const (
	ntStatus = 1
	ntInfo   = 3
	ntAuxv   = 6
	ntFile   = 0x46494c45
	ntSignal = 0x53494749
	ntARMTLS = 0x401 // of LINUX, the others of CORE
)

// notes reads the notes of a segment.
func (c *Core) notes(off, size uint64) {
	n := uint64(len(c.data))
	if off > n || size > n-off {
		c.problem(Truncated, "the file has only %d of the %d bytes of notes at %#x", n-min(off, n), size, off)
		off = min(off, n)
		size = n - off
	}
	if c.noted += size; c.noted > n {
		c.problem(Malformed, "more notes than the file has bytes")
		return
	}
	b := c.data[off : off+size]
	for len(b) >= 12 {
		le := binary.LittleEndian
		nameLen, descLen, typ := uint64(le.Uint32(b)), uint64(le.Uint32(b[4:])), le.Uint32(b[8:])
		desc := 12 + (nameLen+3)&^3
		next := desc + (descLen+3)&^3
		if desc+descLen > uint64(len(b)) {
			c.problem(Truncated, "a note of type %#x with %d bytes is outside the notes", typ, descLen)
			return
		}
		switch string(bytes.TrimRight(b[12:12+nameLen], "\x00")) {
		case "CORE":
			c.note(typ, b[desc:desc+descLen])
		case "LINUX":
			if typ == ntARMTLS {
				c.threadPointer(b[desc : desc+descLen])
			}
		}
		b = b[min(next, uint64(len(b))):]
	}
}

func (c *Core) note(typ uint32, desc []byte) {
	switch typ {
	case ntStatus:
		c.status(desc)
	case ntInfo:
		if len(desc) >= 56 { // elf_prpsinfo of 64-bit systems
			c.PID = binary.LittleEndian.Uint32(desc[24:])
			c.Name = string(desc[40:56][:clen(desc[40:56])])
		}
	case ntAuxv:
		c.auxv(desc)
	case ntFile:
		c.files(desc)
	case ntSignal:
		c.signal(desc)
	}
}

func clen(b []byte) int {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return i
	}
	return len(b)
}

// Places of orig_rax and fs_base in an x86-64 elf_prstatus: pr_reg begins at 112.
const (
	origRAX = 112 + 15*8
	fsBase  = 112 + 21*8
)

// status reads a thread from elf_prstatus.
func (c *Core) status(desc []byte) {
	layout := context.PRStatusAMD64
	if c.Arch == context.ArchARM64 {
		layout = context.PRStatusARM64
	}
	r, err := context.Read(layout, desc)
	if err != nil || len(c.Threads) >= maxThreads {
		c.problem(Malformed, "a thread's registers have %d bytes", len(desc))
		return
	}
	t := Thread{TID: binary.LittleEndian.Uint32(desc[32:]),
		Signal: int(binary.LittleEndian.Uint16(desc[12:])), Regs: r, Stood: live.Stood{Call: -1}}
	if c.Arch == context.ArchAMD64 {
		t.Base, t.Call = binary.LittleEndian.Uint64(desc[fsBase:]),
			int64(binary.LittleEndian.Uint64(desc[origRAX:]))
	}
	c.Threads = append(c.Threads, t)
}

// threadPointer reads tpidr_el0 of the thread whose registers were read last.
func (c *Core) threadPointer(desc []byte) {
	if n := len(c.Threads); n > 0 && len(desc) >= 8 && c.Arch == context.ArchARM64 {
		c.Threads[n-1].Base = binary.LittleEndian.Uint64(desc)
	}
}

// auxv finds the address of the kernel's image (AT_SYSINFO_EHDR), an address on the main thread's stack
// (AT_RANDOM), and the size of pages (AT_PAGESZ).
func (c *Core) auxv(desc []byte) {
	for ; len(desc) >= 16; desc = desc[16:] {
		switch value := binary.LittleEndian.Uint64(desc[8:]); binary.LittleEndian.Uint64(desc) {
		case 33:
			c.VDSO = value
		case 25:
			c.stack = value
		case 6:
			if value >= leastPage && value <= largestPage && value&(value-1) == 0 {
				c.pageSize = value
			}
		}
	}
}

// files reads the mapped files. The note holds their count, the unit of offsets, three
// numbers for each file, and then all names.
func (c *Core) files(desc []byte) {
	r := buf.At(desc, 0)
	count, unit := r.U64(), r.U64()
	if !r.OK() || count > maxFiles || count > uint64(len(desc))/24 {
		c.problem(Malformed, "the list of mapped files names %d in %d bytes", count, len(desc))
		return
	}
	names := desc[16+24*count:]
	for range count {
		f := File{Start: r.U64(), End: r.U64(), Offset: r.U64() * unit}
		end := bytes.IndexByte(names, 0)
		if !r.OK() || end < 0 {
			c.problem(Malformed, "the list of mapped files is cut off after %d", len(c.Files))
			return
		}
		f.Path, names = string(names[:end]), names[end+1:]
		if f.End <= f.Start {
			c.problem(Malformed, "the mapping of %q at %#x ends at %#x", f.Path, f.Start, f.End)
			continue
		}
		c.Files = append(c.Files, f)
	}
}
