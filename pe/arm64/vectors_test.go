package arm64_test

import (
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/internal/testkit/snap"
	"github.com/seedwalk/seedwalk/pe/arm64"
)

// lines calls f for every line of a file of pe vectors.
func lines(t *testing.T, file string, f func(line []byte)) {
	t.Helper()
	dir, err := snap.Vectors()
	if err != nil {
		t.Skip("SKIPPED-CHECK: ", err)
	}
	in, err := os.Open(filepath.Join(dir, "pe", file))
	if err != nil {
		t.Skip("SKIPPED-CHECK: ", err)
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(z)
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		f(s.Bytes())
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}

type decode struct {
	ID     string
	Data   string
	Raw    string
	Fields struct {
		Length, Version, X, E, Epilogs, Codewords int
		Scopes                                    [][3]uint32
		Extended                                  bool
		Codes                                     [][2]string
		Handler                                   *string
		CR, Flag, H, RegF, RegI                   int
		FrameSize                                 *int `json:"frame_size"`
	}
}

func TestDecodeVectors(t *testing.T) {
	xdata, packed := 0, 0
	lines(t, "arm64-decode.jsonl.gz", func(line []byte) {
		var v decode
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		if v.Fields.FrameSize != nil {
			checkPackedFields(t, &v)
			packed++
			return
		}
		checkXdataFields(t, &v)
		xdata++
	})
	t.Logf("arm64-decode: %d xdata records, %d packed words", xdata, packed)
	if xdata == 0 || packed == 0 {
		t.Error("the vectors hold no record of one kind")
	}
}

func checkPackedFields(t *testing.T, v *decode) {
	t.Helper()
	w, err := strconv.ParseUint(v.Data, 16, 32)
	if err != nil {
		t.Fatal(v.ID, err)
	}
	p := arm64.DecodePacked(uint32(w))
	f := &v.Fields
	got := fmt.Sprint(p.Flag, p.Length, p.RegF, p.RegI, p.H, p.CR, p.FrameSize)
	want := fmt.Sprint(f.Flag, f.Length, f.RegF, f.RegI, f.H != 0, f.CR, *f.FrameSize)
	if got != want {
		t.Errorf("%s: got %s, want %s", v.ID, got, want)
	}
	var buf arm64.Buffer
	i, fault := arm64.DecodePackedInfo(uint32(w), &buf)
	if fault.OK() {
		fault = i.Check()
	}
	if !fault.OK() {
		t.Errorf("%s: %v", v.ID, fault)
	}
}

func checkXdataFields(t *testing.T, v *decode) {
	t.Helper()
	raw, err := hex.DecodeString(v.Raw)
	if err != nil {
		t.Fatal(v.ID, err)
	}
	n, fault := arm64.XdataSize(raw[:min(len(raw), arm64.XdataHead)])
	if !fault.OK() || n > len(raw) {
		t.Fatalf("%s: size %d of %d, %v", v.ID, n, len(raw), fault)
	}
	i, fault := arm64.DecodeXdata(raw[:n])
	if !fault.OK() {
		t.Fatalf("%s: %v", v.ID, fault)
	}
	if fault := i.Check(); !fault.OK() {
		t.Errorf("%s: check: %v", v.ID, fault)
	}
	f := &v.Fields
	got := fmt.Sprint(i.Length, i.Version, i.X, i.E, i.Epilogs, i.CodeWords, i.Extended)
	want := fmt.Sprint(f.Length, f.Version, f.X != 0, f.E != 0, f.Epilogs, f.Codewords, f.Extended)
	if got != want {
		t.Errorf("%s: got %s, want %s", v.ID, got, want)
	}
	if f.Handler != nil {
		if got := strconv.FormatUint(uint64(i.Handler), 16); got != *f.Handler {
			t.Errorf("%s: handler %s, want %s", v.ID, got, *f.Handler)
		}
	}
	checkScopes(t, v, &i)
	checkCodes(t, v, i.Codes)
}

func checkScopes(t *testing.T, v *decode, i *arm64.Info) {
	t.Helper()
	if i.Scopes() != len(v.Fields.Scopes) {
		t.Errorf("%s: %d scopes, want %d", v.ID, i.Scopes(), len(v.Fields.Scopes))
		return
	}
	for k, want := range v.Fields.Scopes {
		s := i.Scope(k)
		if got := [3]uint32{s.Start, uint32(s.Reserved), s.Index}; got != want {
			t.Errorf("%s: scope %d: %v, want %v", v.ID, k, got, want)
		}
	}
}

func checkCodes(t *testing.T, v *decode, codes []byte) {
	t.Helper()
	for k, want := range v.Fields.Codes {
		c, _ := arm64.DecodeCode(codes)
		n := min(int(max(c.Size, 1)), len(codes))
		if got := [2]string{c.Op.String(), hex.EncodeToString(codes[:n])}; got != want {
			t.Errorf("%s: code %d: %v, want %v", v.ID, k, got, want)
			return
		}
		codes = codes[n:]
	}
	if len(codes) != 0 {
		t.Errorf("%s: %d bytes of codes left", v.ID, len(codes))
	}
}

// llvmRegister names a register as llvm-readobj does.
func llvmRegister(c *arm64.Code, r uint8) string {
	switch {
	case c.Vector:
		return fmt.Sprintf("d%d", r)
	case r == 30:
		return "lr"
	}
	return fmt.Sprintf("x%d", r)
}

// llvmLine writes a code as llvm-readobj prints the canonical prolog of a
// packed word.
func llvmLine(c *arm64.Code) string {
	if !c.Saves {
		switch c.Op {
		case arm64.SetFP:
			return "mov x29, sp"
		case arm64.PACSignLR:
			return "pacibsp"
		case arm64.Nop:
			return "home"
		case arm64.End:
			return "end"
		}
		return fmt.Sprintf("sub sp, sp, #%d", c.Off)
	}
	where := fmt.Sprintf("[sp, #%d]", c.Off)
	if c.Pre {
		where = fmt.Sprintf("[sp, #-%d]!", c.Off)
	} else if c.Off == 0 && c.Op != arm64.SaveFPLR {
		where = "[sp]"
	}
	if c.Reg2 == arm64.NoRegister {
		return fmt.Sprintf("str %s, %s", llvmRegister(c, c.Reg), where)
	}
	return fmt.Sprintf("stp %s, %s, %s", llvmRegister(c, c.Reg), llvmRegister(c, c.Reg2), where)
}

// llvmWant turns llvm-readobj's line into ours: homing stores are nops.
func llvmWant(line string) string {
	line = strings.TrimSpace(line)
	for _, home := range []string{"stp x0, x1, ", "stp x2, x3, ", "stp x4, x5, ", "stp x6, x7, "} {
		if strings.HasPrefix(line, home) && !strings.HasSuffix(line, "!") {
			return "home"
		}
	}
	return line
}

func TestLLVMPacked(t *testing.T) {
	functions := 0
	lines(t, "arm64-llvmtest.jsonl.gz", func(line []byte) {
		var v struct {
			Sections map[string]string
			LLVM19   [][]string
		}
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		pdata, err := hex.DecodeString(v.Sections[".pdata#4"])
		if err != nil || len(pdata) != 8*len(v.LLVM19) {
			t.Fatal(err, len(pdata))
		}
		table := arm64.New(pdata, nil)
		for k, lines := range v.LLVM19 {
			functions++
			checkLLVMFunction(t, table.Entry(k).Data, lines)
		}
	})
	t.Logf("arm64-llvmtest: %d functions", functions)
}

func checkLLVMFunction(t *testing.T, word uint32, lines []string) {
	t.Helper()
	var buf arm64.Buffer
	i, fault := arm64.DecodePackedInfo(word, &buf)
	if !fault.OK() {
		t.Errorf("%s: %v", lines[0], fault)
		return
	}
	p := &i.Packed
	h := map[bool]string{true: "Yes", false: "No"}[p.H]
	got := []string{"Fragment: No", fmt.Sprintf("FunctionLength: %d", p.Length), fmt.Sprintf("RegF: %d", p.RegF), fmt.Sprintf("RegI: %d", p.RegI),
		"HomedParameters: " + h, fmt.Sprintf("CR: %d", p.CR), fmt.Sprintf("FrameSize: %d", p.FrameSize), "Prologue ["}
	codes := i.Codes
	for {
		c, reason := arm64.DecodeCode(codes)
		if reason != arm64.OK {
			t.Fatalf("%s: %v", lines[0], reason)
		}
		codes = codes[c.Size:]
		got = append(got, llvmLine(&c))
		if c.Last() {
			break
		}
	}
	got = append(got, "]")
	compareLLVM(t, got, lines)
}

// compareLLVM knows where llvm-readobj 19 differs: RegI=1 with CR=1 is INVALID
// there (and is two instructions), and the homing store that makes the save
// area is printed as the store.
func compareLLVM(t *testing.T, got, lines []string) {
	t.Helper()
	var want []string
	for _, l := range lines[1:] {
		switch w := llvmWant(l); {
		case w == "INVALID!":
			want = append(want, "stp x19, lr, [sp]", "sub sp, sp, #16")
		case strings.HasPrefix(w, "stp x0, x1, [sp, #-"):
			want = append(want, "sub sp, sp, #64")
		default:
			want = append(want, w)
		}
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("%s:\ngot\n%s\nwant\n%s", lines[0], g, w)
	}
}
