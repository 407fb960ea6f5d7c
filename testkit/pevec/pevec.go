// Package pevec reads the recorded PE vectors (schema 1, JSON lines) of both
// architectures and builds what a walker needs to replay them: an image, the
// registers of a point, its stack, and what is expected after the step.
//
// Source: the schema's description stands beside the vectors.
//
// Glossary. A *vector* is one line. A *point* is one case of a vector: the state before one
// instruction, and the expected state of the caller. A *kind* is one of these:
//
//   - exec, native-step, synthetic: points
//   - winetest: points made from Wine's table
//   - decode: a record and its fields
//   - malformed: an input that must be refused, or at least must not crash the reader
//
// Strategy: numbers are hex strings in the files; a line is parsed into plain
// values once, images and stacks are built on demand, and stacks share one
// buffer.
//
// Known gaps: the relocations and .xdata of a decode-object line are not read.
package pevec

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/seedwalk/seedwalk/pe"
)

// Hex is a number written as a hex string without 0x.
type Hex uint64

// UnmarshalJSON reads the string.
func (h *Hex) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	v, err := strconv.ParseUint(s, 16, 64)
	*h = Hex(v)
	return err
}

// Bytes are written as hex in memory order.
type Bytes []byte

// UnmarshalJSON reads the string.
func (d *Bytes) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	v, err := hex.DecodeString(s)
	*d = v
	return err
}

// Run is an address (or RVA) and the bytes there: ["hex", "hex"].
type Run struct {
	Addr Hex
	Data Bytes
}

// UnmarshalJSON reads the pair.
func (r *Run) UnmarshalJSON(b []byte) error { return pair(b, &r.Addr, &r.Data) }

func pair(b []byte, first, second any) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	if len(raw) != 2 {
		return fmt.Errorf("pevec: a pair of %d", len(raw))
	}
	if err := json.Unmarshal(raw[0], first); err != nil {
		return err
	}
	return json.Unmarshal(raw[1], second)
}

// Function is one entry of the exception directory.
type Function struct {
	Begin, End Hex
	Data       Hex // UNWIND_INFO RVA (amd64), or the second word (arm64)
	Form       string
}

// UnmarshalJSON reads ["begin","end","unwind"] or {"begin":...}.
func (f *Function) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		type plain Function
		return json.Unmarshal(b, (*plain)(f))
	}
	var t []Hex
	if err := json.Unmarshal(b, &t); err != nil {
		return err
	}
	if len(t) != 3 {
		return fmt.Errorf("pevec: a function of %d numbers", len(t))
	}
	f.Begin, f.End, f.Data = t[0], t[1], t[2]
	return nil
}

// State is a set of registers; what is nil or absent is not given.
type State struct {
	PC         *Hex            `json:"pc"`
	RIP        *Hex            `json:"rip"`
	RSP        *Hex            `json:"rsp"`
	SP         *Hex            `json:"sp"`
	LR         *Hex            `json:"lr"`
	Frame      *Hex            `json:"frame"` // EstablisherFrame
	HandlerRVA *Hex            `json:"-"`     // winetest, amd64: of the handler in charge, 0 = none
	GPR        map[string]Hex  `json:"gpr"`
	XMM        map[string]Wide `json:"xmm"`
	X          map[string]Hex  `json:"x"`
	D          map[string]Hex  `json:"d"`
}

// Wide is a 128-bit register, low quadword first.
type Wide [2]uint64

// UnmarshalJSON reads up to 32 hex digits, most significant first.
func (w *Wide) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if len(s) > 32 {
		return fmt.Errorf("pevec: a register of %d digits", len(s))
	}
	d, err := hex.DecodeString(fmt.Sprintf("%032s", s))
	if err != nil {
		return err
	}
	*w = Wide{binary.BigEndian.Uint64(d[8:]), binary.BigEndian.Uint64(d)}
	return nil
}

// Point is one question.
type Point struct {
	State
	Fn        int    `json:"fn"`
	Where     string `json:"where"` // prolog | body | epilog | epilog2 | leaf
	Ins       string `json:"ins"`
	AfterCall bool   `json:"after_call"` // PC is a return address
	Stack     []Run  `json:"stack"`
	Expect    *State `json:"expect"`

	Alt     *Point // another right answer, or nil (winetest)
	Handler int    // winetest: 1 = a handler is expected, 0, -1 = none, -2 = the call must fail
	Exact   int    // winetest, arm64: 1 = the caller's pc is exact, 0 = it is not, -1 = not said
}

// Vector is one line.
type Vector struct {
	ID           string     `json:"id"`
	Kind         string     `json:"kind"`
	Arch         string     `json:"arch"`
	Base         Hex        `json:"base"`
	Functions    []Function `json:"functions"`
	Mem          []Run      `json:"mem"`
	Entry        State      `json:"entry"`
	Expect       *State     `json:"expect"`
	Points       []Point    `json:"points"`
	StackFill    string     `json:"stack_fill"`
	StackRange   [2]Hex     `json:"stack_range"`
	MachineFrame int        `json:"machine_frame"`

	// decode
	Begin  Hex             `json:"begin"`
	End    Hex             `json:"end"`
	Unwind json.RawMessage `json:"unwind"` // decode: RVA; winetest: bytes
	Data   Hex             `json:"data"`
	Raw    Bytes           `json:"raw"`
	Fields json.RawMessage `json:"fields"`

	// decode-object
	Sections map[string]Bytes `json:"sections"`
	LLVM19   json.RawMessage  `json:"llvm19"` // see LLVMLines

	// malformed
	Must      string         `json:"must"` // error | ok | no-crash | error-or-v3
	Note      string         `json:"note"`
	PC        Hex            `json:"pc"`
	ImageSize Hex            `json:"image_size"`
	GPR       map[string]Hex `json:"gpr"` // the line's own registers, which may name rsp
	X         map[string]Hex `json:"x"`
	Stack     []Run          `json:"stack"` // and memory
	Ctx       struct {
		SP         *Hex   `json:"sp"`
		StackFill  string `json:"stack_fill"`
		StackRange [2]Hex `json:"stack_range"`
	} `json:"ctx"`
}

// Parse reads one line.
func Parse(line []byte) (*Vector, error) {
	v := new(Vector)
	if err := json.Unmarshal(line, v); err != nil {
		return nil, fmt.Errorf("pevec: %w", err)
	}
	switch v.Kind {
	case "winetest":
		return v, v.wine(line)
	case "malformed":
		v.malformed()
	}
	return v, nil
}

// malformedLR is what lr holds in a malformed input's point: no code is there.
const malformedLR = 0x1000

// malformed makes the one point of a malformed input. Registers that the line lists are used. If the line
// lists no stack, none is made up.
func (v *Vector) malformed() {
	if v.Ctx.StackFill != "" {
		v.StackFill, v.StackRange = v.Ctx.StackFill, v.Ctx.StackRange
	}
	sp, pc, lr := v.Ctx.SP, v.PC, Hex(malformedLR)
	if own, ok := v.X["sp"]; ok { // one of GPR goes before RSP anyway
		sp = &own
	}
	s := State{PC: &pc, SP: sp, RSP: sp, LR: &lr, GPR: v.GPR, X: maps.Clone(v.X)}
	delete(s.X, "sp")
	v.Points = []Point{{State: s, Where: "malformed", Stack: v.Stack, Expect: v.Expect, Exact: -1}}
}

// ARM64 reports whether the vector is for ARM64.
func (v *Vector) ARM64() bool { return v.Arch == "arm64" }

// Code returns at most n of the image's bytes at rva, nil if none are recorded.
func (v *Vector) Code(rva uint64, n int) []byte {
	for _, m := range v.Mem {
		if off := rva - uint64(m.Addr); off < uint64(len(m.Data)) {
			b := m.Data[off:]
			return b[:min(n, len(b))]
		}
	}
	return nil
}

// Image builds the image: blocks and exception directory.
func (v *Vector) Image() *pe.File {
	blocks := make([]pe.Block, len(v.Mem))
	for i, m := range v.Mem {
		blocks[i] = pe.Block{RVA: uint32(m.Addr), Data: m.Data}
	}
	var pdata []byte
	for _, f := range v.Functions {
		pdata = binary.LittleEndian.AppendUint32(pdata, uint32(f.Begin))
		if !v.ARM64() {
			pdata = binary.LittleEndian.AppendUint32(pdata, uint32(f.End))
		}
		pdata = binary.LittleEndian.AppendUint32(pdata, uint32(f.Data))
	}
	if v.ARM64() {
		return pe.FromBlocks(pe.MachineARM64, pdata, blocks)
	}
	return pe.FromBlocks(pe.MachineAMD64, pdata, blocks)
}

// Want returns what is expected after the step from p, nil if nothing is.
func (v *Vector) Want(p *Point) *State {
	if p.Expect != nil {
		return p.Expect
	}
	return v.Expect
}
