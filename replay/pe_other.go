package replay

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// slow is how long one malformed line may take: the walkers are bounded, so
// that anything near it is a failure.
const slow = 2 * time.Second

// malformed judges a line by its "must".
func (x *peRun) malformed(name string, data []byte) error {
	v := new(peVector)
	if err := json.Unmarshal(data, v); err != nil {
		return err
	}
	t := x.r.tally(name, true)
	start := time.Now()
	stop, values, crash, err := x.hostile(v)
	if err != nil {
		return fmt.Errorf("%s: %w", v.ID, err)
	}
	took := time.Since(start)
	verdict := wrong
	switch v.Must {
	case "error", "error-or-v3":
		if stop != unwind.StopNone && stop != unwind.EndOfStack {
			verdict = right
		}
	case "ok":
		if stop == unwind.StopNone && !differ(values) {
			verdict = right
		}
	case "no-crash":
		verdict = right
	default:
		return fmt.Errorf("%s: must %q: %w", v.ID, v.Must, ErrFormat)
	}
	if took > slow || crash {
		verdict = wrong
	}
	x.r.count(t, verdict, func() Mismatch {
		m := x.mismatch(v, uint64(v.PC), fmt.Sprintf("rva %x, must %s: %s", uint64(v.PC), v.Must, v.Note), unwind.StopNone, values)
		m.Why = fmt.Sprintf("stop %s, crash %v, %s", stop, crash, took)
		return m
	})
	return nil
}

// hostile steps once. The image around the hostile data is well formed: if it
// is not read, that is an error.
func (x *peRun) hostile(v *peVector) (stop unwind.Stop, values []Pair, crash bool, err error) {
	mem, err := x.stackFilled(v.Ctx.StackRange)
	if err != nil {
		return 0, nil, false, err
	}
	defer func() {
		if r := recover(); r != nil {
			crash = true
			values = append(values, Pair{"panic", "none", fmt.Sprint(r)})
		}
	}()
	if err := x.load(v); err != nil {
		return 0, nil, false, err
	}
	s := x.newStep(v.Arch)
	s.set(&peState{SP: &v.Ctx.SP, X: map[string]hexWord{"lr": 0x1000}, GPR: map[string]hexWord{"rsp": v.Ctx.SP}})
	s.setIP(uint64(v.Base) + uint64(v.PC))
	stop = s.run(mem)
	if v.Expect != nil {
		values = s.compare(v.Expect)
	}
	return stop, values, false, nil
}

// wineVector is one of Wine's own unwinder tests; its results come from
// Windows.
type wineVector struct {
	ID              string
	Arch            string
	Code, Unwind    string
	Packed          bool
	CodeRVA         hexWord `json:"code_rva"`
	UnwindRVA       hexWord `json:"unwind_rva"`
	StackValueIndex *int    `json:"stack_value_index"`
	StackValue      uint64  `json:"stack_value"`
	UnwoundClear    int     `json:"unwound_clear"`
	Results         []wineResult
	Alt             []wineResult `json:"alt_results"`
}

type wineResult struct {
	RIPOffset     uint64 `json:"rip_offset"`
	RBPOffset     uint64 `json:"rbp_offset"`
	PCOffset      uint64 `json:"pc_offset"`
	FPOffset      uint64 `json:"fp_offset"`
	Handler       int
	RIP, PC       uint64
	Frame         uint64
	FrameIsOffset int `json:"frame_is_offset"`
	Regs          map[string]int64
}

const (
	wineBase  = 0x180000000
	wineStack = 0x7f0000000000
	wineWords = 256
)

// wine judges every result of a vector.
func (x *peRun) wine(name string, data []byte) error {
	w := new(wineVector)
	if err := json.Unmarshal(data, w); err != nil {
		return err
	}
	v, err := w.vector()
	if err != nil {
		return fmt.Errorf("%s: %w", w.ID, err)
	}
	if err := x.load(v); err != nil {
		return fmt.Errorf("%s: %w", w.ID, err)
	}
	t := x.r.tally(name, true)
	mem := w.stack()
	for i := range w.Results {
		r := &w.Results[i]
		stop, values := x.wineStep(w, r, mem)
		verdict := wineVerdict(r, stop, values)
		if verdict != right && i < len(w.Alt) {
			if s2, v2 := x.wineStep(w, &w.Alt[i], mem); wineVerdict(&w.Alt[i], s2, v2) == right {
				verdict = right
			}
		}
		rva := uint64(w.CodeRVA) + r.RIPOffset + r.PCOffset
		x.r.count(t, verdict, func() Mismatch { return x.mismatch(v, rva, fmt.Sprintf("rva %x", rva), stop, values) })
	}
	return nil
}

// wineVerdict: a return address of 0 is the end of the stack here.
func wineVerdict(r *wineResult, stop unwind.Stop, values []Pair) verdict {
	switch {
	case r.Handler == -2:
		if stop != unwind.StopNone {
			return right
		}
		return wrong
	case stop == unwind.EndOfStack && r.RIP == 0 && r.PC == 0:
		return right
	case stop != unwind.StopNone:
		return refused
	case differ(values):
		return wrong
	}
	return right
}

func (w *wineVector) vector() (*peVector, error) {
	code, err := hex.DecodeString(w.Code)
	if err != nil {
		return nil, err
	}
	info, err := hex.DecodeString(w.Unwind)
	if err != nil {
		return nil, err
	}
	v := &peVector{ID: w.ID, Arch: w.Arch, Base: wineBase, Mem: []hexRun{{Addr: uint64(w.CodeRVA), Data: code}}}
	f := peFunction{begin: uint32(w.CodeRVA), end: uint32(w.CodeRVA) + uint32(len(code)), data: uint32(w.UnwindRVA)}
	if w.Packed {
		if len(info) < 4 {
			return nil, fmt.Errorf("a packed word of %d bytes", len(info))
		}
		f.data = binary.LittleEndian.Uint32(info)
	} else {
		v.Mem = append(v.Mem, hexRun{Addr: uint64(w.UnwindRVA), Data: info})
	}
	v.Functions = []peFunction{f}
	return v, nil
}

// stack is the fake stack: word j holds j*8.
func (w *wineVector) stack() *memory.Window {
	b := make([]byte, 8*wineWords)
	for j := range wineWords {
		binary.LittleEndian.PutUint64(b[8*j:], uint64(j*8))
	}
	if i := w.StackValueIndex; i != nil && *i >= 0 && *i < wineWords {
		binary.LittleEndian.PutUint64(b[8**i:], w.StackValue)
	}
	return memory.New(memory.Run{Addr: wineStack, Data: b})
}

const (
	wineOther = 0x5555555555555555 // in every register but those below
	wineLR    = 0xCCCCCCCC

	wineHandler = 0x200 // RVA
)

func (x *peRun) wineStep(w *wineVector, r *wineResult, mem *memory.Window) (unwind.Stop, []Pair) {
	s := x.newStep(w.Arch)
	from, want := w.states(r)
	s.set(from)
	s.setIP(wineBase + uint64(w.CodeRVA) + r.RIPOffset + r.PCOffset)
	stop := s.run(mem)
	return stop, s.compare(want)
}

func (w *wineVector) states(r *wineResult) (from, want *peState) {
	word := func(v uint64) *hexWord { h := hexWord(v); return &h }
	from = &peState{SP: word(wineStack), GPR: map[string]hexWord{}, X: map[string]hexWord{}}
	want = &peState{GPR: map[string]hexWord{}, X: map[string]hexWord{}, D: map[string]hexWord{}}
	for _, name := range savedAMD64 {
		from.GPR[name] = wineOther
	}
	for n := range 31 {
		from.X[fmt.Sprintf("x%d", n)] = wineOther
	}
	from.GPR["rbp"] = hexWord(wineStack + r.RBPOffset)
	from.X["x29"], from.X["x30"] = hexWord(wineStack+r.FPOffset), wineLR
	for name, v := range r.Regs {
		switch {
		case name == "rsp" && v < 0:
			want.RSP = word(uint64(-v))
		case name == "rsp":
			want.RSP = word(wineStack + uint64(v))
		case name[0] == 'r':
			want.GPR[name] = hexWord(v)
		case name[0] == 'd':
			want.D[name] = hexWord(v)
		default:
			want.X[name] = hexWord(v)
		}
	}
	if w.Arch == "amd64" {
		want.RIP, want.Frame, want.Handler = word(r.RIP), word(wineStack+r.Frame), word(0)
		if r.Handler == 1 {
			want.Handler = word(wineHandler)
		}
		return from, want
	}
	want.PC, want.SP = word(r.PC), word(r.Frame)
	if r.FrameIsOffset != 0 {
		want.SP = word(wineStack + r.Frame)
	}
	return from, want
}
