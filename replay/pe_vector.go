package replay

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"

	"github.com/seedwalk/seedwalk/memory"
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

// peFunction is one .pdata entry: a triple on x64, {begin, data} on ARM64.
type peFunction struct{ begin, end, data uint32 }

func (f *peFunction) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		var t [3]hexWord
		err := json.Unmarshal(b, &t)
		f.begin, f.end, f.data = uint32(t[0]), uint32(t[1]), uint32(t[2])
		return err
	}
	var o struct{ Begin, End, Data hexWord }
	err := json.Unmarshal(b, &o)
	f.begin, f.end, f.data = uint32(o.Begin), uint32(o.End), uint32(o.Data)
	return err
}

// hexRun is bytes at an address.
type hexRun memory.Run

func (r *hexRun) UnmarshalJSON(b []byte) error {
	var t [2]string
	if err := json.Unmarshal(b, &t); err != nil {
		return err
	}
	at, err := strconv.ParseUint(t[0], 16, 64)
	if err != nil {
		return err
	}
	data, err := hex.DecodeString(t[1])
	r.Addr, r.Data = at, data
	return err
}

// peState is a set of registers; a register that is absent is not said.
type peState struct {
	PC, RIP *hexWord
	SP, RSP *hexWord
	Frame   *hexWord // EstablisherFrame
	Handler *hexWord `json:"-"`
	GPR     map[string]hexWord
	XMM     map[string]string
	X       map[string]hexWord
	D       map[string]hexWord
}

// pePoint is a question: the state before the instruction at PC runs.
type pePoint struct {
	peState
	Fn        int
	Where     string
	Ins       string
	AfterCall bool `json:"after_call"`
	Stack     []hexRun
	Expect    *peState
}

// peVector is a line of the kinds exec, native-step, synthetic and malformed.
type peVector struct {
	ID         string
	Kind       string
	Arch       string
	Base       hexWord
	Functions  []peFunction
	Mem        []hexRun
	Entry      peState
	Expect     *peState
	StackRange [2]hexWord `json:"stack_range"`
	Points     []pePoint
	Contested  json.RawMessage

	// malformed:
	PC        hexWord
	ImageSize hexWord `json:"image_size"`
	Ctx       struct {
		SP         hexWord
		StackRange [2]hexWord `json:"stack_range"`
	}
	Must string
	Note string
}

// maxStack bounds a recorded stack, bytes.
const maxStack = 64 << 20

// stackAround builds the stack of a point: recorded runs, zeros between and
// around them.
func stackAround(sp uint64, runs []hexRun) (*memory.Window, error) {
	lo, hi := sp&^7-4096, sp&^7+60<<10
	for _, r := range runs {
		lo, hi = min(lo, r.Addr), max(hi, r.Addr+uint64(len(r.Data)))
	}
	if hi < lo || hi-lo > maxStack {
		return nil, fmt.Errorf("the stack runs lie too far apart: %#x-%#x", lo, hi)
	}
	data := make([]byte, hi-lo)
	for _, r := range runs {
		copy(data[r.Addr-lo:], r.Data)
	}
	return memory.New(memory.Run{Addr: lo, Data: data}), nil
}

const mul64 = 0x9E3779B97F4A7C15

// stackFilled is a stack whose words are made of their addresses; one is kept.
func (x *peRun) stackFilled(r [2]hexWord) (*memory.Window, error) {
	lo, hi := uint64(r[0]), uint64(r[1])
	if x.filled != nil && x.filledAt == r {
		return x.filled, nil
	}
	if hi < lo || hi-lo > maxStack || (hi-lo)&7 != 0 {
		return nil, fmt.Errorf("stack range %#x-%#x", lo, hi)
	}
	data := make([]byte, hi-lo)
	for i := uint64(0); i < hi-lo; i += 8 {
		binary.LittleEndian.PutUint64(data[i:], (lo+i)*mul64)
	}
	x.filled, x.filledAt = memory.New(memory.Run{Addr: lo, Data: data}), r
	return x.filled, nil
}

// codeAt returns at most n image bytes at rva that the vector lists.
func (v *peVector) codeAt(rva uint64, n int) []byte {
	for _, m := range v.Mem {
		if off := rva - m.Addr; off < uint64(len(m.Data)) {
			b := m.Data[off:]
			return b[:min(n, len(b))]
		}
	}
	return nil
}

// names returns a map's keys in the order of register numbers.
func names[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if len(a) != len(b) {
			return len(a) < len(b)
		}
		return a < b
	})
	return out
}
