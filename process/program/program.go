// Package program classifies a file for a profiler's user: its machine, and whether it can be a profiler
// library or start a .NET process. It reads ELF and PE files on any system. On Windows it also lists the
// processes of a program.
//
// Sources: the ELF specification; Microsoft, "PE Format"; dotnet/runtime
// src/native/corehost/apphost/bundle_marker.c (the mark of .NET launchers).
//
// Glossary. A *launcher* starts a .NET program next to it (apphost) or inside it (single file).
//
// Strategy: the first bytes give the format, the format's reader the rest. Unknown content is not an error:
// the caller reports what was found.
//
// Known gaps: a script does not count as a program, whatever it starts.
package program

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/seedwalk/seedwalk/pe"
)

// Format is the kind of image a file is.
type Format uint8

const (
	NoImage Format = iota // a script, a document, damaged
	ELF
	PE
)

// FormatOf returns the format of programs on a system, given as GOOS.
func FormatOf(goos string) Format {
	if goos == "windows" {
		return PE
	}
	return ELF
}

// String returns the format's displayed name.
func (f Format) String() string {
	return [...]string{"no program", "a Linux program (ELF)", "a Windows program (PE)"}[f%3]
}

// File is the classification of a file.
type File struct {
	Path    string
	Format  Format
	Arch    string // as GOARCH; "" for other architectures
	Machine string // the same for display
	Bits    int    // 32 or 64; 0 unknown
	Managed bool   // PE: it has a header of managed code
	Mscoree bool   // PE: it imports mscoree.dll, which starts the .NET Framework
	Err     error  // why it is not an image
}

// Open classifies a file. The error is that of reading; a file that is not an image is not an error.
func Open(path string) (File, error) {
	f := File{Path: path}
	fd, err := os.Open(path)
	if err != nil {
		return f, err
	}
	defer fd.Close()
	var magic [4]byte
	if _, err := io.ReadFull(fd, magic[:]); err != nil {
		f.Err = errors.New("it is empty, or too short for a program")
		return f, nil
	}
	switch {
	case string(magic[:]) == "\x7fELF":
		f.Err = f.elf(fd)
	case magic[0] == 'M' && magic[1] == 'Z':
		f.Err = f.pe(path)
	default:
		f.Err = errors.New("it is neither a Linux program (ELF) nor a Windows program (PE)")
	}
	return f, nil
}

var elfMachines = map[uint16][2]string{62: {"amd64", "x86-64"}, 183: {"arm64", "ARM64"},
	3: {"386", "x86 (32-bit)"}, 40: {"arm", "ARM (32-bit)"}, 243: {"", "RISC-V"}, 258: {"", "LoongArch"}}

// elf reads a file header up to its machine. Its other parts may be damaged.
func (f *File) elf(r io.ReaderAt) error {
	const class, order, machine = 4, 5, 18 // offsets
	var head [machine + 2]byte
	_, err := r.ReadAt(head[:], 0)
	if err != nil || head[class] < 1 || head[class] > 2 {
		return errors.New("its ELF header is damaged")
	}
	f.Format, f.Bits = ELF, 32*int(head[class])
	number := binary.LittleEndian.Uint16(head[machine:])
	if head[order] == 2 {
		number = binary.BigEndian.Uint16(head[machine:])
	}
	m, ok := elfMachines[number]
	if !ok {
		m[1] = fmt.Sprintf("machine %#x", number)
	}
	f.Arch, f.Machine = m[0], m[1]
	return nil
}

var peMachines = map[uint16]struct {
	arch, name string
	bits       int
}{pe.MachineAMD64: {"amd64", "x86-64", 64}, pe.MachineARM64: {"arm64", "ARM64", 64},
	0x14c: {"386", "x86 (32-bit)", 32},
	0x1c4: {"arm", "ARM (32-bit)", 32}}

func (f *File) pe(path string) error {
	p, err := pe.Open(path)
	if err != nil {
		return err
	}
	f.Format = PE
	m, ok := peMachines[p.Machine()]
	if !ok {
		m.name = fmt.Sprintf("machine %#x", p.Machine())
	}
	f.Arch, f.Machine, f.Bits, f.Managed = m.arch, m.name, m.bits, p.CLRHeader()
	imports, _ := p.Imports() // a partial result is useful
	for i := range imports {
		if strings.EqualFold(imports[i].DLL, "mscoree.dll") {
			f.Mscoree = true
		}
	}
	return nil
}

// mark is the signature in the header of every .NET launcher and single-file program. Every bit of it is
// inverted here, so that seedwalk itself does not contain the signature.
var mark = [32]byte{0x74, 0xed, 0xfd, 0x46, 0x95, 0x9e, 0xdf, 0xc7, 0x8d, 0x84,
	0x6c, 0xfd, 0xeb, 0x28, 0x5f, 0xcd,
	0xec, 0x0a, 0x46, 0x19, 0x10, 0x51, 0xcc, 0xe7, 0x11, 0xc4, 0xd2, 0x31, 0xdb, 0x4c, 0x95, 0x51}

// Mark returns the signature: 32 bytes.
func Mark() []byte {
	out := make([]byte, len(mark))
	for i, b := range mark {
		out[i] = ^b
	}
	return out
}

// markWithin bounds the search for the mark, bytes: it is in the launcher's data, before the bundled files.
const markWithin = 64 << 20

// IsLauncher reports whether a program contains the mark of .NET launchers.
func IsLauncher(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, markWithin))
	return err == nil && bytes.Contains(b, Mark())
}
