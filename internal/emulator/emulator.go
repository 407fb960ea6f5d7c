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
	"os"
	"path/filepath"
	"strings"
)

// machines are those that .NET runs on, as QEMU calls them, by GOARCH.
var machines = map[string]string{
	"qemu-aarch64": "arm64", "qemu-arm": "arm", "qemu-i386": "386", "qemu-loongarch64": "loong64",
	"qemu-ppc64le": "ppc64le", "qemu-riscv64": "riscv64", "qemu-s390x": "s390x", "qemu-x86_64": "amd64",
}

// Of returns the machine whose programs a process emulates, as GOARCH, "" if the process is itself the
// program. The process is named by its folder in proc.
func Of(process string) string {
	exe, _ := os.Readlink(filepath.Join(process, "exe"))
	return machines[strings.TrimSuffix(filepath.Base(exe), "-static")]
}
