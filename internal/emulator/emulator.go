// Package emulator tells processes that run a program of another machine: the program's
// addresses are the process's and its threads are threads, but what the kernel says of
// the process is said of the emulator.
//
// Sources: QEMU's documentation, "User space emulator" and its list of targets;
// the ELF specification (machines).
//
// Glossary. QEMU *user mode* runs one program by the kernel of this machine; its *system*
// mode runs a whole machine, whose processes are not seen from here.
//
// Strategy: an emulator is known by the name of its executable, which is all that can be
// seen of it without reading its memory.
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
