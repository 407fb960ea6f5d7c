package inspect

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/golden"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// inFile writes an image and makes its folder the working directory, so that
// no path of this machine is in the output.
func inFile(t *testing.T, data []byte) string {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "tiny.so"), data, 0o644))
	return filepath.Join(dir, "tiny.so")
}

type texter interface{ Text(io.Writer) }

func both(t *testing.T, name string, v texter) {
	t.Helper()
	var b bytes.Buffer
	v.Text(&b)
	golden.Check(t, "testdata/"+name+".txt", b.Bytes())
	for i, l := range bytes.Split(b.Bytes(), []byte("\n")) {
		if len(l) > 120 {
			t.Errorf("%s line %d has %d columns", name, i+1, len(l))
		}
	}
	j := must.Get(json.MarshalIndent(v, "", "  "))(t)
	golden.Check(t, "testdata/"+name+".json", append(j, '\n'))
}

func TestSummary(t *testing.T) {
	im := must.Get(Open(inFile(t, elfasm.Image())))(t)
	s := im.Summary()
	s.File = "tiny.so"
	both(t, "elf-summary", s)
}

func TestFunction(t *testing.T) {
	im := must.Get(Open(inFile(t, elfasm.Image())))(t)
	byName := must.Get(im.At("outer"))(t)
	both(t, "elf-function", byName)
	byAddr := must.Get(im.At("0x1004"))(t)
	if byAddr.Asked != 0x1004 || byAddr.Lo != byName.Lo || len(byAddr.Lines) != 4 {
		t.Errorf("at 0x1004: %+v", byAddr)
	}
	for _, bad := range []string{"inner", "0x2000", ""} {
		if _, err := im.At(bad); err == nil {
			t.Errorf("At(%q) found something", bad)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name      string
		program   []byte
		malformed int
		class     Class
	}{
		{"unknown opcode", []byte{0x3c, 0, 0}, 1, Malformed},
		{"restore without remember", []byte{0x0b, 0, 0}, 1, Malformed},
		{"expression of an unknown operation", []byte{0x0f, 1, 0xf7}, 1, Malformed},
		{"cut expression", []byte{0x0f, 2, 0x0a, 1}, 1, Malformed},
		{"PAuth_LR opcode", []byte{0x2b, 0, 0, 0}, 1, Malformed}, // AArch64's, unknown here
		{"CFA from a segment register", []byte{0x0d, 60}, 0, Contradictory},
		{"nothing wrong", program(), 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := must.Get(CheckFile(inFile(t, elfasm.ImageWith(c.program))))(t)
			if got.Entries != 1 || got.Count(Malformed) != c.malformed || c.class == "" && len(got.Findings) != 0 || c.class != "" && got.Count(c.class) == 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

func program() []byte { return []byte{0x41, 0x0e, 16, 0x86, 2} }

func TestCheckText(t *testing.T) {
	c := must.Get(CheckFile(inFile(t, elfasm.ImageWith([]byte{0x0f, 1, 0xf7}))))(t)
	if c.PeakKiB <= 0 || c.Size <= 0 || c.Seconds <= 0 {
		t.Errorf("peak %d KiB, size %d, %f s", c.PeakKiB, c.Size, c.Seconds)
	}
	c.File, c.Seconds, c.PeakKiB = "tiny.so", 0.25, 2048
	both(t, "elf-check", c)
}

func TestOpenRefuses(t *testing.T) {
	for name, data := range map[string][]byte{"empty": {}, "one byte": {'M'}, "text": []byte("hello, world"), "cut ELF": []byte("\x7fELF\x02\x01"), "cut PE": []byte("MZ")} {
		if _, err := Open(inFile(t, data)); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("an absent file was opened")
	}
}
