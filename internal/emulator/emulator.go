// Package emulator recognizes processes that run a program of another machine in an
// emulator. The program's addresses and threads are those of the process, but the kernel
// describes the emulator: its executable and its registers.
//
// Sources: QEMU's documentation, "User space emulator" and its list of targets;
// the ELF specification (machines).
//
// Glossary. QEMU *user mode* runs one program by the kernel of this machine; its *system*
// mode runs a whole machine, whose processes are not seen from here.
//
// Strategy: the name of its executable identifies an emulator. Nothing else shows it
// without reading its memory.
//
// Known gaps: an executable of another name; other emulators than QEMU (box64, FEX).
package emulator

import (
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
)

// machines are those that .NET runs on, as QEMU calls them.
var machines = map[string]elf.Machine{
	"qemu-aarch64":     elf.EM_AARCH64,
	"qemu-arm":         elf.EM_ARM,
	"qemu-i386":        elf.EM_386,
	"qemu-loongarch64": elf.EM_LOONGARCH,
	"qemu-ppc64le":     elf.EM_PPC64,
	"qemu-riscv64":     elf.EM_RISCV,
	"qemu-s390x":       elf.EM_S390,
	"qemu-x86_64":      elf.EM_X86_64,
}

// Of is the machine whose programs a process emulates, EM_NONE if it is itself the
// program. The process is named by its folder in proc.
func Of(process string) elf.Machine {
	exe, err := os.Readlink(filepath.Join(process, "exe"))
	if err != nil {
		return elf.EM_NONE
	}
	return machines[strings.TrimSuffix(filepath.Base(exe), "-static")]
}
