package pevec

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/seedwalk/seedwalk/testkit/snap"
)

// Wine's tests run on a made stack: word j holds 8j, the stack pointer is at
// word 0, every register not named holds 5555...
const (
	wineStack = 0x7f0000000000
	wineBase  = 0x180000000
	wineWords = 256
	wineFill  = 0x5555555555555555
	wineLR    = 0xCCCCCCCC

	wineHandler = 0x200 // RVA of the handler its images name
)

type wineLine struct {
	CodeRVA    Hex          `json:"code_rva"`
	UnwindRVA  Hex          `json:"unwind_rva"`
	Code       Bytes        `json:"code"`
	Unwind     Bytes        `json:"unwind"`
	Packed     bool         `json:"packed"`
	Clear      int          `json:"unwound_clear"`
	StackIndex *int         `json:"stack_value_index"`
	StackValue uint64       `json:"stack_value"`
	Results    []wineResult `json:"results"`
	Alt        []wineResult `json:"alt_results"`
}

type wineResult struct {
	RIPOffset     uint64           `json:"rip_offset"`
	RBPOffset     uint64           `json:"rbp_offset"`
	PCOffset      uint64           `json:"pc_offset"`
	FPOffset      uint64           `json:"fp_offset"`
	Handler       int              `json:"handler"`
	RIP           uint64           `json:"rip"`
	PC            uint64           `json:"pc"`
	Frame         uint64           `json:"frame"`
	FrameIsOffset int              `json:"frame_is_offset"`
	Regs          map[string]int64 `json:"regs"`
}

// wine turns a winetest line into an image and points.
func (v *Vector) wine(line []byte) error {
	var w wineLine
	if err := json.Unmarshal(line, &w); err != nil {
		return fmt.Errorf("pevec: %w", err)
	}
	v.Base = wineBase
	f := Function{Begin: w.CodeRVA, End: w.CodeRVA + Hex(len(w.Code)), Data: w.UnwindRVA}
	v.Mem = []Run{{w.CodeRVA, w.Code}, {w.UnwindRVA, w.Unwind}}
	if w.Packed && len(w.Unwind) >= 4 {
		f.Data, v.Mem = Hex(binary.LittleEndian.Uint32(w.Unwind)), v.Mem[:1]
	}
	v.Functions = []Function{f}
	stack := w.stack()
	for k := range w.Results {
		p, err := v.winePoint(&w, &w.Results[k], stack)
		if err != nil {
			return err
		}
		if w.Clear != 0 {
			p.Exact = 0
			if k >= w.Clear {
				p.Exact = 1
			}
		}
		if k < len(w.Alt) {
			alt, err := v.winePoint(&w, &w.Alt[k], stack)
			if err != nil {
				return err
			}
			p.Alt = &alt
		}
		v.Points = append(v.Points, p)
	}
	return nil
}

func (w *wineLine) stack() []Run {
	var data Bytes
	for j := range wineWords {
		val := uint64(8 * j)
		if w.StackIndex != nil && *w.StackIndex == j {
			val = w.StackValue
		}
		data = binary.LittleEndian.AppendUint64(data, val)
	}
	return []Run{{wineStack, data}}
}

func (v *Vector) winePoint(w *wineLine, r *wineResult, stack []Run) (Point, error) {
	if v.ARM64() {
		return wineARM64(w, r, stack)
	}
	return wineAMD64(w, r, stack)
}

func wineAMD64(w *wineLine, r *wineResult, stack []Run) (Point, error) {
	pc, rip, frame := w.CodeRVA+Hex(r.RIPOffset), Hex(r.RIP), Hex(wineStack+r.Frame)
	p := Point{Where: "winetest", Stack: stack, Handler: r.Handler, Exact: -1}
	p.PC, p.GPR, p.XMM = &pc, map[string]Hex{}, map[string]Wide{}
	for _, n := range names {
		p.GPR[n] = wineFill
	}
	for i := 6; i < 16; i++ {
		p.XMM["xmm"+strconv.Itoa(i)] = Wide{wineFill, wineFill}
	}
	p.GPR["rsp"], p.GPR["rbp"] = wineStack, Hex(wineStack+r.RBPOffset)
	var handler Hex
	if r.Handler == 1 {
		handler = wineHandler
	}
	p.Expect = &State{RIP: &rip, Frame: &frame, HandlerRVA: &handler, GPR: map[string]Hex{}}
	for name, val := range r.Regs {
		if snap.AMD64Index(name) < 0 {
			return p, fmt.Errorf("pevec: no register %q", name)
		}
		p.Expect.GPR[name] = Hex(val)
		if name == "rsp" {
			p.Expect.GPR[name] = wineSP(val)
		}
	}
	return p, nil
}

// wineSP: a stack pointer is relative to the stack, unless it is negative.
func wineSP(val int64) Hex {
	if val < 0 {
		return Hex(-val)
	}
	return Hex(wineStack + val)
}

func wineARM64(w *wineLine, r *wineResult, stack []Run) (Point, error) {
	pc, sp, to := w.CodeRVA+Hex(r.PCOffset), Hex(wineStack), Hex(r.PC)
	frame := Hex(r.Frame)
	if r.FrameIsOffset != 0 {
		frame += wineStack
	}
	p := Point{Where: "winetest", Stack: stack, Handler: r.Handler, Exact: -1}
	p.PC, p.SP, p.X, p.D = &pc, &sp, map[string]Hex{}, map[string]Hex{}
	for i := range 31 {
		p.X["x"+strconv.Itoa(i)] = wineFill
	}
	for i := 8; i < 16; i++ {
		p.D["d"+strconv.Itoa(i)] = wineFill
	}
	p.X["x29"], p.X["x30"] = Hex(wineStack+r.FPOffset), wineLR
	p.Expect = &State{PC: &to, SP: &frame, Frame: &frame, X: map[string]Hex{}, D: map[string]Hex{}}
	for name, val := range r.Regs {
		switch {
		case name == "lr":
			p.Expect.X["x30"] = Hex(val)
		case name == "sp":
			spNow := wineSP(val)
			p.Expect.SP = &spNow
		case len(name) > 1 && name[0] == 'x':
			p.Expect.X[name] = Hex(val)
		case len(name) > 1 && name[0] == 'd':
			p.Expect.D[name] = Hex(val)
		default:
			return p, fmt.Errorf("pevec: no register %q", name)
		}
	}
	return p, nil
}
