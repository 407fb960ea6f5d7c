package inspect

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/regnum"

	"github.com/seedwalk/seedwalk/context"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/golden"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestDisassemble(t *testing.T) {
	for _, c := range []struct {
		name string
		arch context.Arch
		code string
		want string // instructions, separated by "; "
	}{
		{"prolog", context.ArchAMD64, "554889e5", "push rbp; mov rbp, rsp"},
		{"endbr64", context.ArchAMD64, "f30f1efa90", "endbr64; nop"},
		{"vzeroupper", context.ArchAMD64, "c5f877c3", "(vex) c5f877; ret"},
		{"vex with sib and disp8", context.ArchAMD64, "c5fe6f44240890", "(vex) c5fe6f442408; nop"},
		{"vex3 with imm8", context.ArchAMD64, "c4e37d39c10190", "(vex) c4e37d39c101; nop"},
		{"evex", context.ArchAMD64, "62f1fe486f442401c3", "(vex) 62f1fe486f442401; ret"},
		{"unknown byte", context.ArchAMD64, "06c3", ".byte 0x06; ret"},
		{"cut", context.ArchAMD64, "48", ".byte 0x48"},
		{"cut vex", context.ArchAMD64, "c5fe", ".byte 0xc5; .byte 0xfe"},
		{"pac", context.ArchARM64, "3f2303d5c0035fd6", "paciasp; ret"},
		{"branch", context.ArchARM64, "02000014", "b 0x1008"},
		{"branch back", context.ArchARM64, "ffffff17", "b 0xffc"},
		{"undefined", context.ArchARM64, "00000000", ".word 0x00000000"},
		{"cut word", context.ArchARM64, "c003", ".byte c003"},
	} {
		code := must.Get(hex.DecodeString(c.code))(t)
		var got []string
		n := 0
		for _, in := range Disassemble(c.arch, 0x1000, code) {
			got = append(got, in.Text)
			n += len(in.Bytes)
		}
		s := strings.Join(got, "; ")
		expect.True(t, s == c.want && n == len(code), "%s: %q of %d bytes, want %q", c.name, s, n, c.want)
	}
}

func TestARM64Effect(t *testing.T) {
	for _, c := range []struct{ name, codes, cfa, saved string }{
		{"leaf", "e4", "sp+0", "return address in lr"},
		{"alloc", "02e4", "sp+32", "return address in lr"},
		{"frame record", "e181e4", "x29+16", "x29 [cfa-16], lr [cfa-8]"},
		{"save_next", "e6c882e4", "sp+0",
			"x21 [cfa+16], x22 [cfa+24], x23 [cfa+32], x24 [cfa+40], return address in lr"},
		{"signed", "81fce4", "sp+16", "x29 [cfa-16], lr [cfa-8], ra signed"},
		{"machine frame", "e9e4", "machine_frame at sp+0", ""},
		{"cut", "c8", "?", "truncated unwind code"},
	} {
		codes := must.Get(hex.DecodeString(c.codes))(t)
		if cfa, saved := ARM64Effect(codes); cfa != c.cfa || saved != c.saved {
			t.Errorf("%s: %q, %q; want %q, %q", c.name, cfa, saved, c.cfa, c.saved)
		}
	}
}

// The effect of every named operation is printed, except for those that describe no instruction of a prolog.
func TestEveryOperationHasAnEffect(t *testing.T) {
	for op := peamd64.Op(0); op.String() != "op?"; op++ {
		want := op != peamd64.UWOP_EPILOG && op != peamd64.UWOP_SPARE_CODE
		e := amd64Effect{base: "rsp"}
		i, c := &peamd64.Info{FrameReg: 5}, &peamd64.Code{Op: op, Operand: 8}
		expect.Equal(t, e.undo(c), want, "%v: amd64Effect.undo returns", op)
		if text := AMD64CodeText(i, c); (strings.TrimSpace(text) != "+0   "+op.String()) != want {
			t.Errorf("%v: AMD64CodeText returns %q, which must show an instruction: %v", op, text, want)
		}
	}
}

// Registers have the names that Delve gives to the same DWARF numbers.
func TestRegNames(t *testing.T) {
	theirs := strings.NewReplacer("rip", "ra", "v", "d") // the return address's column; the half that is kept
	for _, c := range []struct {
		arch context.Arch
		name func(uint64) string
		lo   uint16
		hi   uint16
	}{
		{context.ArchAMD64, regnum.AMD64ToName, 0, 32},
		{context.ArchARM64, regnum.ARM64ToName, 0, 31},
		{context.ArchARM64, regnum.ARM64ToName, 64, 95},
	} {
		for n := c.lo; n <= c.hi; n++ {
			want := theirs.Replace(strings.ToLower(c.name(uint64(n))))
			if got := RegName(c.arch, n); got != want {
				t.Errorf("%s %d: %q, Delve says %q", fmt.Sprint(c.arch), n, got, want)
			}
		}
	}
}

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
		expect.True(t, len(l) <= 120, "%s line %d has %d columns", name, i+1, len(l))
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
	expect.True(t, byAddr.Asked == 0x1004 && byAddr.Lo == byName.Lo && len(byAddr.Lines) == 4,
		"at 0x1004: %+v", byAddr)
	for _, bad := range []string{"inner", "0x2000", ""} {
		_, err := im.At(bad)
		expect.True(t, err != nil, "At(%q) found something", bad)
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
			if got.Entries != 1 || got.Count(Malformed) != c.malformed ||
				c.class == "" && len(got.Findings) != 0 || c.class != "" && got.Count(c.class) == 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

func program() []byte { return []byte{0x41, 0x0e, 16, 0x86, 2} }

func TestCheckText(t *testing.T) {
	c := must.Get(CheckFile(inFile(t, elfasm.ImageWith([]byte{0x0f, 1, 0xf7}))))(t)
	expect.True(t, c.PeakKiB > 0 && c.Size > 0 && c.Seconds > 0,
		"peak %d KiB, size %d, %f s", c.PeakKiB, c.Size, c.Seconds)
	c.File, c.Seconds, c.PeakKiB = "tiny.so", 0.25, 2048
	both(t, "elf-check", c)
}

func TestOpenRefuses(t *testing.T) {
	for name, data := range map[string][]byte{"empty": {}, "one byte": {'M'}, "text": []byte("hello, world"),
		"cut ELF": []byte("\x7fELF\x02\x01"), "cut PE": []byte("MZ")} {
		_, err := Open(inFile(t, data))
		expect.True(t, err != nil, "%s was opened", name)
	}
	_, err := Open(filepath.Join(t.TempDir(), "absent"))
	expect.True(t, err != nil, "an absent file was opened")
}
