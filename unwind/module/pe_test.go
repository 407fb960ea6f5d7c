package module

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/testkit/peasm"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

const (
	peTestBase = peasm.Base
	peTestLoad = 0x7ff0_0000_0000
)

// writePE writes an image of SizeOfImage 3000h with one section, .eh_frame at
// RVA 1000h, whose pointers are relative to where they stand.
func writePE(t *testing.T, machine uint16, frame []byte) string {
	t.Helper()
	s := peasm.Raw(".eh_frame", 0x1000, frame[:len(frame):len(frame)])
	s.Goto(0x1200)
	s.Virtual = uint32(len(frame))
	im := peasm.File{Machine: machine, Sections: []*peasm.Section{s}, Size: 0x3000}
	path := filepath.Join(tempdir.New(t), "a.dll")
	if err := os.WriteFile(path, im.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// mingwFrame is one function at RVA 2000h, 40h bytes: pcrel, as the GNU
// compilers write it.
func mingwFrame() []byte {
	le := binary.LittleEndian
	b := []byte{20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0}
	b = append(b, 20, 0, 0, 0, 28, 0, 0, 0)
	b = le.AppendUint32(b, 0x2000-(0x1000+uint32(len(b))))
	b = le.AppendUint32(b, 0x40)
	return append(b, 0, 0x41, 0x0e, 16, 0, 0, 0, 0, 0, 0, 0, 0)
}

func TestLoadPE(t *testing.T) {
	path := writePE(t, 0x8664, mingwFrame())
	m := LoadPE(7, path, peTestLoad, 0)
	if m.Err != nil || m.PE == nil || m.ID != 7 || m.Start != peTestLoad || m.End != peTestLoad+0x3000 || m.Bias != peTestLoad || m.BuildID != "" {
		t.Fatalf("%+v", m)
	}
	if m.CFI == nil {
		t.Fatal("the .eh_frame of a PE image is not loaded")
	}
	for rva, want := range map[uint64]cfi.Reason{0x2000: cfi.None, 0x203f: cfi.None, 0x2040: cfi.NoInfo, 0x1fff: cfi.NoInfo} {
		if _, why := m.CFI.Find(rva + m.PE.ImageBase()); why != want {
			t.Errorf("%#x: %v, want %v", rva, why, want)
		}
	}
	if m := LoadPE(7, path, peTestLoad, peTestLoad+0x1000); m.End != peTestLoad+0x1000 {
		t.Errorf("end %#x, want the caller's", m.End)
	}
}

// TestLoadPEOther: an image of an architecture that is not read has no tables,
// but its range is known.
func TestLoadPEOther(t *testing.T) {
	if m := LoadPE(1, writePE(t, 0x14c, mingwFrame()), peTestLoad, 0); m.Err != nil || m.CFI != nil || m.End != peTestLoad+0x3000 {
		t.Errorf("%+v", m)
	}
	if m := LoadPE(1, filepath.Join(tempdir.New(t), "none"), peTestLoad, peTestLoad+0x1000); m.Err == nil || m.PE != nil || m.End != peTestLoad+0x1000 {
		t.Errorf("%+v", m)
	}
}
