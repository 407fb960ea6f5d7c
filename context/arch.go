package context

import "runtime"

// Arch is a processor architecture. It is the only such type of the project.
type Arch uint8

const (
	NoArch    Arch = iota // unknown, or not supported
	ArchAMD64             // x86-64
	ArchARM64             // AArch64
)

// Arches lists the architectures.
var Arches = [...]Arch{ArchAMD64, ArchARM64}

var archNames = [...]struct{ text, goarch string }{{"unknown architecture", "other"},
	{"x86-64", "amd64"}, {"ARM64", "arm64"}}

// String returns the architecture's displayed name.
func (a Arch) String() string { return archNames[a.index()].text }

// GOARCH returns Go's name of the architecture, used in file names, flags, and output.
func (a Arch) GOARCH() string { return archNames[a.index()].goarch }

func (a Arch) index() int {
	if int(a) < len(archNames) {
		return int(a)
	}
	return int(NoArch)
}

// ArchOf returns the architecture that Go calls goarch, or NoArch.
func ArchOf(goarch string) Arch {
	for _, a := range Arches {
		if a.GOARCH() == goarch {
			return a
		}
	}
	return NoArch
}

// Host returns the architecture that this program runs on.
func Host() Arch { return ArchOf(runtime.GOARCH) }

// MarshalText writes the architecture as GOARCH.
func (a Arch) MarshalText() ([]byte, error) { return []byte(a.GOARCH()), nil }
