package arm64

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"testing"

	"github.com/seedwalk/seedwalk/internal/testkit/snap"
	"github.com/seedwalk/seedwalk/memory"
	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/unwind"
)

// hexWord is a number written as a hex string without 0x.
type hexWord uint64

func (h *hexWord) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	v, err := strconv.ParseUint(s, 16, 64)
	*h = hexWord(v)
	return err
}

// peState is a set of registers of a vector.
type peState struct {
	PC *hexWord
	SP hexWord
	X  map[string]hexWord
	D  map[string]hexWord
}

type peVector struct {
	ID        string
	Base      hexWord
	Functions []struct {
		Begin, Data hexWord
		Form        string
	}
	Mem        [][2]string
	Entry      peState
	Expect     *peState
	StackRange [2]hexWord `json:"stack_range"`
	Points     []pePoint
}

type pePoint struct {
	peState
	Fn     int
	Where  string
	Ins    string
	Stack  [][2]string
	Expect *peState
}

// peLines calls f for every vector of a file.
func peLines(t testing.TB, file string, f func(line []byte)) {
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

// blocks are the image bytes of a vector by RVA; anything else reads 0.
type blocks []memory.Run

func readBlocks(t testing.TB, mem [][2]string) blocks {
	t.Helper()
	var out blocks
	for _, m := range mem {
		at, err := strconv.ParseUint(m[0], 16, 64)
		data, err2 := hex.DecodeString(m[1])
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		out = append(out, memory.Run{Addr: at, Data: data})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Addr < out[j].Addr })
	return out
}

func (b blocks) at(rva uint64, n int) []byte {
	out := make([]byte, n)
	for _, r := range b {
		for i := range out {
			if off := rva + uint64(i) - r.Addr; off < uint64(len(r.Data)) {
				out[i] = r.Data[off]
			}
		}
	}
	return out
}

// vectorInfo finds and decodes the unwind information at rva.
func vectorInfo(v *peVector, b blocks, rva uint64, buf *pearm64.Buffer) (info pearm64.Info, begin uint64, found bool, fault pearm64.Fault) {
	for _, f := range v.Functions {
		if uint64(f.Begin) > rva || found && uint64(f.Begin) < begin {
			continue
		}
		data := uint32(f.Data)
		var i pearm64.Info
		if data&3 != 0 {
			i, fault = pearm64.DecodePackedInfo(data, buf)
		} else {
			var n int
			if n, fault = pearm64.XdataSize(b.at(uint64(data), pearm64.XdataHead)); fault.OK() {
				i, fault = pearm64.DecodeXdata(b.at(uint64(data), n))
			}
		}
		if fault.OK() && rva-uint64(f.Begin) < uint64(i.Length) {
			info, begin, found = i, uint64(f.Begin), true
		}
	}
	return info, begin, found, fault
}

// regsOf builds the registers of a point: entry's, overridden by the point's.
func regsOf(v *peVector, p *pePoint) Registers {
	var r Registers
	for _, s := range []*peState{&v.Entry, &p.peState} {
		override(&r, s)
	}
	r.Sp, r.PC, r.Known = uint64(p.SP), uint64(v.Base)+uint64(*p.PC), 1<<31-1|0xff<<32
	return r
}

func override(r *Registers, s *peState) {
	for name, val := range s.X {
		n, _ := strconv.Atoi(name[1:])
		r.X[n] = uint64(val)
	}
	for name, val := range s.D {
		n, _ := strconv.Atoi(name[1:])
		r.D[n-8] = uint64(val)
	}
}

// wantOf builds what is expected after the step.
func wantOf(v *peVector, p *pePoint, from *Registers) Registers {
	w := *from
	e := v.Expect
	if p.Expect != nil {
		e = p.Expect
	}
	override(&w, e)
	w.PC, w.Sp = uint64(*e.PC), uint64(e.SP)
	return w
}

const mul64 = 0x9E3779B97F4A7C15

// stackOf builds the stack around a point: recorded runs with zeros between,
// or words made of their addresses.
func stackOf(t testing.TB, v *peVector, p *pePoint) *memory.Window {
	t.Helper()
	if v.StackRange[1] != 0 {
		return filledStack(uint64(v.StackRange[0]), uint64(v.StackRange[1]))
	}
	lo := uint64(p.SP) &^ 7
	data := make([]byte, 64<<10)
	for _, s := range p.Stack {
		at, err := strconv.ParseUint(s[0], 16, 64)
		b, err2 := hex.DecodeString(s[1])
		if err != nil || err2 != nil || at < lo-4096 || at+uint64(len(b)) > lo-4096+uint64(len(data)) {
			t.Fatalf("%s: stack run %s: %v %v", v.ID, s[0], err, err2)
		}
		copy(data[at-(lo-4096):], b)
	}
	return memory.New(memory.Run{Addr: lo - 4096, Data: data})
}

var filled = map[[2]uint64]*memory.Window{}

// filledStack is a stack whose words are made of their addresses.
func filledStack(lo, hi uint64) *memory.Window {
	if w := filled[[2]uint64{lo, hi}]; w != nil {
		return w
	}
	data := make([]byte, hi-lo)
	for i := uint64(0); i < hi-lo; i += 8 {
		binary.LittleEndian.PutUint64(data[i:], (lo+i)*mul64)
	}
	w := memory.New(memory.Run{Addr: lo, Data: data})
	filled[[2]uint64{lo, hi}] = w
	return w
}

// samePreserved compares what a step must restore.
func samePreserved(got, want *Registers) string {
	for i := 19; i < 30; i++ {
		if got.X[i] != want.X[i] {
			return "x" + strconv.Itoa(i)
		}
	}
	for i := range got.D {
		if got.D[i] != want.D[i] {
			return "d" + strconv.Itoa(i+8)
		}
	}
	switch {
	case got.PC != want.PC:
		return "pc"
	case got.Sp != want.Sp:
		return "sp"
	}
	return ""
}

// runPoint steps by running the codes and, where they compile, by the rule.
func runPoint(t testing.TB, u *Unwinder, v *peVector, b blocks, p *pePoint) (diff string, compiled bool) {
	t.Helper()
	regs := regsOf(v, p)
	want := wantOf(v, p, &regs)
	mem := stackOf(t, v, p)
	rva := uint64(*p.PC)
	exact := true // behind a call too: the state is that after the return
	info, begin, found, fault := vectorInfo(v, b, rva, &u.packed)
	if !fault.OK() {
		return fault.Reason.String(), false
	}
	f := unwind.Frame{}
	if !found {
		r := makeRule(RuleLeafPE, 0)
		stop := stepRule(t, &r, &regs, exact, mem, &f)
		return stopOr(stop, &regs, &want), true
	}
	codes, _, fault := info.At(uint32(rva - begin))
	if !fault.OK() {
		return fault.Reason.String(), false
	}
	slow := regs
	if _, stop := u.runCodes(codes, &slow, exact, mem, &unbounded, &f); stop != unwind.StopNone {
		return "run: " + stop.String(), false
	}
	if d := samePreserved(&slow, &want); d != "" {
		return "run: " + d, false
	}
	u.undo.compile()
	if u.undo.codes(codes) != undone {
		return "", false
	}
	r, ok := u.undo.pack(0)
	if !ok {
		return "", false
	}
	return stopOr(stepRule(t, &r, &regs, exact, mem, &f), &regs, &want), true
}

func stopOr(stop unwind.Stop, got, want *Registers) string {
	if stop != unwind.StopNone {
		return stop.String()
	}
	return samePreserved(got, want)
}

func TestPEVectors(t *testing.T) {
	for _, file := range []string{"exec", "native", "synth", "packedx"} {
		t.Run(file, func(t *testing.T) {
			u := New()
			points, compiled, wrong := 0, 0, 0
			peLines(t, "arm64-"+file+".jsonl.gz", func(line []byte) {
				v := new(peVector)
				if err := json.Unmarshal(line, v); err != nil {
					t.Fatal(err)
				}
				b := readBlocks(t, v.Mem)
				for i := range v.Points {
					p := &v.Points[i]
					diff, fast := runPoint(t, u, v, b, p)
					points++
					if fast {
						compiled++
					}
					if diff != "" {
						if wrong++; wrong <= 10 {
							t.Errorf("%s pc %#x %s %q: %s", v.ID, uint64(*p.PC), p.Where, p.Ins, diff)
						}
					}
				}
			})
			t.Logf("arm64-%s: %d points, %d right, %d by a packed rule too", file, points, points-wrong, compiled)
			if points == 0 {
				t.Error("no points")
			}
		})
	}
}
