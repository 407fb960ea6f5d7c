package peasm

import (
	"bytes"
	"debug/pe"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// The standard library reads what is written: it is independent of our reader.
func TestFileIsRead(t *testing.T) {
	text := NewSection(".text", 0x1000).Label("f").Bytes(0xc3).Align(4).AtLabel("there", "f")
	data := NewSection("a long name", 0x3000).Text("x").Label("there").U16(7)
	for _, f := range []File{{Sections: []*Section{text, data}},
		{Machine: I386, PE32: true, Sections: []*Section{text, data}, DLL: true},
		{Machine: ARM64, Base: 0x180000000, Sections: []*Section{text, data},
			Dirs: map[int]Directory{Exception: {Label: "there", Size: 2}}}} {
		got, err := pe.NewFile(bytes.NewReader(f.Bytes()))
		must.Do(t, err)
		expect.True(t, len(got.Sections) == 2 && got.Sections[1].Name == "a long name" &&
			got.Sections[1].VirtualAddress == 0x3000, "%+v", got.Sections)
		b, err := got.Sections[0].Data()
		if want := []byte{0xc3, 0, 0, 0, 2, 0x30, 0, 0, 0, 0x10, 0, 0}; err != nil || !bytes.Equal(b, want) {
			t.Errorf("%v, %s", err, cmp.Diff(want, b))
		}
	}
}

func TestProgramIsRead(t *testing.T) {
	im := Image{DLL: true, Exports: []string{"A"},
		Imports: map[string][]string{"one.dll": {"F", "G"}, "two.dll": {"H"}},
		Version: [4]uint16{1, 2, 3, 4}, Managed: true}
	for _, machine := range []uint16{AMD64, I386} {
		im.Machine = machine
		f, err := pe.NewFile(bytes.NewReader(im.Bytes()))
		must.Do(t, err)
		got, err := f.ImportedSymbols()
		diff := cmp.Diff([]string{"F:one.dll", "G:one.dll", "H:two.dll"}, got)
		expect.True(t, err == nil && diff == "", "machine %#x: %v, %s", machine, err, diff)
	}
}

func TestNoLabel(t *testing.T) {
	defer func() {
		expect.True(t, recover() != nil, "a label that is nowhere is written")
	}()
	(&File{Sections: []*Section{NewSection("", 0).AtLabel("nowhere")}}).Bytes()
}
