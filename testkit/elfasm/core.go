package elfasm

// Kinds of notes and of parts of a core (Linux, uapi linux/elf.h).
const (
	noteStatus  = 1 // NT_PRSTATUS
	noteProcess = 3 // NT_PRPSINFO
	noteFiles   = 0x46494c45
	partLoad    = 1
	partNote    = 4
)

// Core is a core file of Linux.
type Core struct {
	Machine uint16
	Parts   []CorePart
	notes   []byte
}

// CorePart is a piece of memory with protection Flags (PF_*); Size may be more than len(Data).
type CorePart struct {
	Flags      uint32
	Addr, Size uint64
	Data       []byte
}

// CoreFile is what is mapped of a file; Offset is in pages of 4096 bytes.
type CoreFile struct {
	Start, End, Offset uint64
	Path               string
}

// Note appends a note of the kernel's.
func (c *Core) Note(kind uint32, desc []byte) { c.notes = append(c.notes, Note("CORE", kind, desc)...) }

// Note is a note of an owner with a name of four or five letters.
func Note(owner string, kind uint32, desc []byte) []byte {
	b := put32(nil, uint32(len(owner)+1), uint32(len(desc)), kind)
	b = append(append(b, owner...), make([]byte, 8-len(owner))...)
	return append(append(b, desc...), make([]byte, -len(desc)&3)...)
}

// Thread appends the status of a thread: its number, the last signal, and its registers in the
// order of the machine's struct user_regs.
func (c *Core) Thread(tid uint32, signal uint16, regs ...uint64) {
	const signalAt, tidAt, regsAt, size = 12, 32, 112, 392
	status := make([]byte, size)
	put16(status[signalAt:signalAt], signal)
	put32(status[tidAt:tidAt], tid)
	put64(status[regsAt:regsAt], regs...)
	c.Note(noteStatus, status)
}

// Process appends the note with a process's number and name.
func (c *Core) Process(pid uint32, name string) {
	info := make([]byte, 136)
	put32(info[24:24], pid)
	copy(info[40:], name)
	c.Note(noteProcess, info)
}

// Files appends the note with the mapped files.
func (c *Core) Files(files ...CoreFile) {
	desc := put64(nil, uint64(len(files)), 4096)
	for _, f := range files {
		desc = put64(desc, f.Start, f.End, f.Offset)
	}
	for _, f := range files {
		desc = append(desc, f.Path+"\x00"...)
	}
	c.Note(noteFiles, desc)
}

// Bytes is the file: the header, the notes, and the parts.
func (c *Core) Bytes() []byte {
	const header, program, core = 64, 56, 4
	b := make([]byte, header+program*(1+len(c.Parts)))
	copy(b, "\x7fELF\x02\x01\x01")
	put16(b[16:16], core, c.Machine)
	put64(b[32:32], header)
	put16(b[54:54], program, uint16(1+len(c.Parts)))
	put := func(i int, kind uint32, p CorePart) {
		at := header + program*i
		put32(b[at:at], kind, p.Flags)
		put64(b[at+8:at+8], uint64(len(b)), p.Addr, 0, uint64(len(p.Data)), p.Size)
		b = append(b, p.Data...)
	}
	put(0, partNote, CorePart{Data: c.notes})
	for i, p := range c.Parts {
		put(1+i, partLoad, p)
	}
	return b
}
