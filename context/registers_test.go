package context

import (
	"errors"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// Access to the two architectures' registers through the common type.
func readAMD64(l Layout, b []byte) (AMD64, error) { r, err := Read(l, b); return r.AMD64, err }
func readARM64(l Layout, b []byte) (ARM64, error) { r, err := Read(l, b); return r.ARM64, err }
func writeAMD64(l Layout, b []byte, r *AMD64) error {
	return Write(l, b, &Registers{Arch: ArchAMD64, AMD64: *r})
}
func writeARM64(l Layout, b []byte, r *ARM64) error {
	return Write(l, b, &Registers{Arch: ArchARM64, ARM64: *r})
}

func TestArch(t *testing.T) {
	for _, c := range []struct {
		a            Arch
		text, goarch string
	}{
		{NoArch, "unknown architecture", "other"},
		{ArchAMD64, "x86-64", "amd64"},
		{ArchARM64, "ARM64", "arm64"},
		{ArchARM64 + 1, "unknown architecture", "other"},
	} {
		expect.True(t, c.a.String() == c.text && c.a.GOARCH() == c.goarch,
			"%d: %q, %q", c.a, c.a.String(), c.a.GOARCH())
	}
	for _, a := range Arches {
		expect.True(t, ArchOf(a.GOARCH()) == a, "%v is not what %q gives", a, a.GOARCH())
	}
	for _, name := range []string{"", "other", "386"} {
		expect.Equal(t, ArchOf(name), NoArch, "%q", name)
	}
}

// Each accessor reads and writes the register of its architecture, and no other.
func TestRegisters(t *testing.T) {
	for _, a := range Arches {
		r := Registers{Arch: a}
		r.SetIP(1)
		r.SetSP(2)
		r.SetFP(3)
		r.SetKnown(4)
		want := Registers{Arch: ArchAMD64, AMD64: AMD64{RIP: 1, GPR: [16]uint64{RSP: 2, RBP: 3}, Known: 4}}
		if a == ArchARM64 {
			want = Registers{Arch: ArchARM64, ARM64: ARM64{PC: 1, Sp: 2, X: [31]uint64{29: 3}, Known: 4}}
		}
		expect.Equal(t, r, want, a)
		expect.True(t, r.IP() == 1 && r.SP() == 2 && r.FP() == 3 && r.Known() == 4,
			"%v: ip %d, sp %d, fp %d, known %d", a, r.IP(), r.SP(), r.FP(), r.Known())
	}
	none := Registers{AMD64: sample(), ARM64: sampleARM64()}
	before := none
	none.SetIP(1)
	none.SetSP(1)
	none.SetFP(1)
	none.SetKnown(1)
	expect.True(t, none == before && none.IP() == 0 && none.SP() == 0 && none.FP() == 0 &&
		none.Known() == 0 && none.Lost() != 0, "registers of no architecture: %+v", none)
}

func TestLost(t *testing.T) {
	for _, c := range []struct {
		name string
		r    Registers
		want uint64
	}{
		{"x86-64, all known", FromAMD64(sample()), 0},
		{"x86-64, a volatile register missing", FromAMD64(AMD64{Known: (1<<16 - 1) &^ (1 << RAX)}), 0},
		{"x86-64, r13 missing", FromAMD64(AMD64{Known: (1<<16 - 1) &^ (1 << R13)}), 1 << R13},
		{"ARM64, all known", FromARM64(sampleARM64()), 0},
		{"ARM64, x30 missing", FromARM64(ARM64{Known: 1<<30 - 1}), 0},
		{"ARM64, x20 missing", FromARM64(ARM64{Known: (1<<31 - 1) &^ (1 << 20)}), 1 << 20},
	} {
		expect.Equal(t, c.r.Lost(), c.want, c.name)
	}
}

func TestLayoutArch(t *testing.T) {
	for l := Win32AMD64; l <= lastLayout+1; l++ {
		want := ArchAMD64
		switch {
		case l > lastLayout:
			want = NoArch
		case l >= Win32ARM64:
			want = ArchARM64
		}
		expect.Equal(t, l.Arch(), want, l)
	}
}

func TestWrongArchitecture(t *testing.T) {
	b := make([]byte, 9999)
	var arch *ArchError
	for l := Win32AMD64; l <= lastLayout+1; l++ {
		for _, a := range []Arch{NoArch, ArchAMD64, ArchARM64} {
			err := Write(l, b, &Registers{Arch: a})
			if right := a != NoArch && a == l.Arch(); right != (err == nil) ||
				!right && !errors.As(err, &arch) {
				t.Errorf("registers of %v written as %s: %v", a, l, err)
			}
		}
	}
	_, err := Read(lastLayout+1, b)
	expect.True(t, errors.As(err, &arch), "an unknown layout was read: %v", err)
}
