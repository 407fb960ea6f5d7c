package arm64

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/memory"
	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/unwind"
)

// wineVector is one of Wine's own unwinder tests, whose results come from
// Windows.
type wineVector struct {
	ID              string
	Code, Unwind    string
	Packed          bool
	UnwoundClear    int    `json:"unwound_clear"`
	StackValueIndex int    `json:"stack_value_index"`
	StackValue      uint64 `json:"stack_value"`
	CodeRVA         string `json:"code_rva"`
	Results         []struct {
		PCOffset      uint64 `json:"pc_offset"`
		FPOffset      uint64 `json:"fp_offset"`
		PC            uint64
		Frame         uint64
		FrameIsOffset int `json:"frame_is_offset"`
		Regs          map[string]uint64
	}
}

const (
	wineBase  = 0x180000000
	wineStack = 0x7f0000000000
)

func TestPEWine(t *testing.T) {
	results := 0
	peLines(t, "arm64-winetest.jsonl.gz", func(line []byte) {
		var v wineVector
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		for i := range v.Results {
			runWine(t, &v, i)
			results++
		}
	})
	t.Logf("arm64-winetest: %d results", results)
	if results == 0 {
		t.Error("no results")
	}
}

func runWine(t *testing.T, v *wineVector, k int) {
	t.Helper()
	res := &v.Results[k]
	data, err := hex.DecodeString(v.Unwind)
	rva, err2 := strconv.ParseUint(v.CodeRVA, 16, 32)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	stack := make([]byte, 256*8)
	for j := range 256 {
		val := uint64(j * 8)
		if j == v.StackValueIndex {
			val = v.StackValue
		}
		for i := range 8 {
			stack[8*j+i] = byte(val >> (8 * i))
		}
	}
	regs := Registers{PC: wineBase + rva + res.PCOffset, Sp: wineStack, Known: 1<<31 - 1 | 0xff<<32}
	for i := range regs.X {
		regs.X[i] = 0x5555555555555500 + uint64(i)
	}
	regs.X[regFP], regs.X[regLR] = wineStack+res.FPOffset, 0xCCCCCCCC
	want := regs
	want.PC, want.Sp = res.PC, res.Frame
	if res.FrameIsOffset != 0 {
		want.Sp += wineStack
	}
	wineRegs(t, &want, res.Regs)
	u := New()
	var info pearm64.Info
	var fault pearm64.Fault
	if v.Packed {
		info, fault = pearm64.DecodePackedInfo(uint32(data[0])|uint32(data[1])<<8|uint32(data[2])<<16|uint32(data[3])<<24, &u.packed)
	} else {
		info, fault = pearm64.DecodeXdata(data)
	}
	codes, _, fault2 := info.At(uint32(res.PCOffset))
	if !fault.OK() || !fault2.OK() {
		t.Fatalf("%s: %v %v", v.ID, fault, fault2)
	}
	f := unwind.Frame{}
	callerExact, stop := u.runCodes(codes, &regs, true, memory.New(memory.Run{Addr: wineStack, Data: stack}), &unbounded, &f)
	if d := stopOr(stop, &regs, &want); d != "" || regs.X[regLR] != want.X[regLR] {
		t.Errorf("%s at +%d: %s; pc %#x sp %#x lr %#x, want %#x %#x %#x", v.ID, res.PCOffset, d, regs.PC, regs.Sp, regs.X[regLR], want.PC, want.Sp, want.X[regLR])
	}
	if want := v.UnwoundClear != 0 && k >= v.UnwoundClear; callerExact != want {
		t.Errorf("%s at +%d: exact %v, want %v", v.ID, res.PCOffset, callerExact, want)
	}
}

func wineRegs(t *testing.T, r *Registers, regs map[string]uint64) {
	t.Helper()
	for name, val := range regs {
		if name == "lr" {
			r.X[regLR] = val
			continue
		}
		n, err := strconv.Atoi(name[1:])
		switch {
		case err != nil:
			t.Fatal(name)
		case name[0] == 'x':
			r.X[n] = val
		default:
			r.D[n-8] = val
		}
	}
}

type malformedVector struct {
	peVector
	PC  hexWord
	Ctx struct {
		SP         hexWord
		StackRange [2]hexWord `json:"stack_range"`
	}
	ImageSize hexWord `json:"image_size"`
	Must      string
	Note      string
}

func TestPEMalformed(t *testing.T) {
	n := 0
	peLines(t, "malformed.jsonl.gz", func(line []byte) {
		var v malformedVector
		if !strings.Contains(string(line), `"arch":"arm64"`) {
			return
		}
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		n++
		why := runMalformed(t, &v)
		switch {
		case v.Must == "error" && why == "":
			t.Errorf("%s (%s): accepted", v.ID, v.Note)
		case v.Must != "error" && v.Must != "no-crash":
			t.Errorf("%s: must %q is not known to this test", v.ID, v.Must)
		}
		t.Logf("%s: %s", v.ID, why)
	})
	t.Logf("malformed: %d arm64 lines", n)
	if n == 0 {
		t.Error("no lines")
	}
}

// runMalformed gives the reason for which a line is refused.
func runMalformed(t *testing.T, v *malformedVector) string {
	t.Helper()
	u := New()
	b := readBlocks(t, v.Mem)
	fn := v.Functions[0]
	info, fault := malformedInfo(u, b, uint32(fn.Data), uint64(v.ImageSize))
	if !fault.OK() {
		return fault.Reason.String()
	}
	codes, _, fault := info.At(uint32(v.PC - fn.Begin))
	if !fault.OK() {
		return fault.Reason.String()
	}
	regs := Registers{PC: uint64(v.Base + v.PC), Sp: uint64(v.Ctx.SP), Known: 1<<31 - 1}
	f := unwind.Frame{}
	regs.X[regLR] = 0x1000 // so that an end of stack is no accident of the test
	if _, stop := u.runCodes(codes, &regs, true, filledStack(uint64(v.Ctx.StackRange[0]), uint64(v.Ctx.StackRange[1])), &unbounded, &f); stop != unwind.StopNone {
		return stop.String()
	}
	return ""
}

func malformedInfo(u *Unwinder, b blocks, data uint32, image uint64) (pearm64.Info, pearm64.Fault) {
	if data&3 != 0 {
		return pearm64.DecodePackedInfo(data, &u.packed)
	}
	rest := int(image - min(image, uint64(data)))
	n, fault := pearm64.XdataSize(b.at(uint64(data), min(rest, pearm64.XdataHead)))
	if !fault.OK() {
		return pearm64.Info{}, fault
	}
	return pearm64.DecodeXdata(b.at(uint64(data), min(n, rest)))
}
