package pevec

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// TestVectorsRead builds everything every line of every file describes.
func TestVectorsRead(t *testing.T) {
	files := []string{"exec", "native", "synth", "decode", "winetest"}
	for _, file := range append([]string{"arm64-packedx", "malformed", "arm64-llvmtest"},
		append(prefixed("amd64-", files), prefixed("arm64-", files)...)...) {
		t.Run(file, func(t *testing.T) {
			var s Stacks
			points := 0
			n, err := Each(file+".jsonl.gz", func(v *Vector) error {
				expect.True(t, v.Image() != nil, "%s: no image", v.ID)
				for i := range v.Points {
					points++
					if err := build(&s, v, &v.Points[i]); err != nil {
						return err
					}
				}
				return nil
			})
			if errors.Is(err, ErrAbsent) {
				t.Skip("SKIPPED-CHECK: ", err)
			}
			must.True(t, err == nil && n != 0, "%v %v", n, err)
			t.Logf("%s: %d lines, %d points", file, n, points)
		})
	}
}

func build(s *Stacks, v *Vector, p *Point) error {
	w, err := s.Window(v, p)
	if err != nil {
		return err
	}
	if v.ARM64() {
		r, err := v.RegsARM64(p)
		if err == nil && v.Kind != "malformed" {
			_, err = v.WantARM64(p, &r)
		}
		return err
	}
	r, err := v.AMD64(p)
	if err == nil && v.Kind != "malformed" {
		_, err = v.WantAMD64(p, &r)
	}
	if _, ok := w.Word(r.GPR[context.RSP]); !ok {
		return errors.New(v.ID + ": no stack at rsp")
	}
	return err
}

func prefixed(p string, names []string) (out []string) {
	for _, n := range names {
		out = append(out, p+n)
	}
	return out
}

func TestParseRefuses(t *testing.T) {
	for name, line := range map[string]string{
		"no JSON":            `{`,
		"number as register": `{"kind":"exec","points":[{"gpr":{"rax":"zz"}}]}`,
		"odd bytes":          `{"kind":"exec","mem":[["10","abc"]]}`,
		"block of three":     `{"kind":"exec","mem":[["10","ab","cd"]]}`,
		"function of two":    `{"kind":"exec","functions":[["1","2"]]}`,
		"register too wide": `{"kind":"exec","points":[{"xmm":{"xmm6":"` +
			strings.Repeat("0", 33) + `"}}]}`,
		"unknown wine result": `{"kind":"winetest","arch":"amd64","results":[{"regs":{"rzx":1}}]}`,
	} {
		_, err := Parse([]byte(line))
		expect.True(t, err != nil, "%s: accepted", name)
	}
}

func TestWindowRefuses(t *testing.T) {
	for name, line := range map[string]string{
		"runs too far apart": `{"kind":"exec","points":[{"gpr":{"rsp":"10000000"},"stack":[["90000000","00"]]}]}`,
		"range too large":    `{"kind":"synthetic","stack_fill":"mul64","stack_range":["0","100000000000"],"points":[{}]}`,
		"unknown filling":    `{"kind":"synthetic","stack_fill":"x","stack_range":["0","1000"],"points":[{}]}`,
		"wraps":              `{"kind":"exec","points":[{"gpr":{"rsp":"fffffffffffffff0"}}]}`,
	} {
		v, err := Parse([]byte(line))
		must.Equal(t, err, nil, name)
		var s Stacks
		_, err = s.Window(v, &v.Points[0])
		expect.True(t, err != nil, "%s: accepted", name)
	}
}

func TestDecodeLines(t *testing.T) {
	v := must.Get(Parse([]byte(`{"id":"a","kind":"decode","arch":"amd64","begin":"10","end":"20","unwind":"30","raw":"01","fields":{"version":1,"frame_reg":5,"codes":[[4,"SAVE_NONVOL_FAR",5,1634480]],"handler":"40"}}`)))(t)
	var f AMD64Fields
	err := v.DecodeFields(&f)
	expect.True(t, err == nil && f.Version == 1 && f.FrameReg == 5 && len(f.Codes) == 1 && *f.Handler == "40",
		"%v, %+v", err, f)
	expect.Equal(t, fmt.Sprint(f.Codes[0]), "[4 SAVE_NONVOL_FAR 5 1634480]", "a code")
	rva, err := v.UnwindRVA()
	expect.True(t, err == nil && rva == 0x30, "%#x, %v", rva, err)
	v = must.Get(Parse([]byte(`{"id":"b","kind":"decode-object","arch":"arm64","sections":{".pdata#4":"00ff"},"llvm19":[["f","x"]]}`)))(t)
	lines, err := v.LLVMLines()
	expect.True(t, err == nil && len(lines) == 1 && lines[0][1] == "x" && len(v.Sections[".pdata#4"]) == 2,
		"%v, %v", err, lines)
}

func TestDecodeRefuses(t *testing.T) {
	v := must.Get(Parse([]byte(`{"id":"a","kind":"decode","unwind":"100000000","fields":{"version":"x"},"llvm19":"text"}`)))(t)
	var f AMD64Fields
	expect.True(t, v.DecodeFields(&f) != nil, "a version that is no number is read")
	_, err := v.UnwindRVA()
	expect.True(t, err != nil, "an RVA of 33 bits is read")
	_, err = v.LLVMLines()
	expect.True(t, err != nil, "text is read as lines")
}
