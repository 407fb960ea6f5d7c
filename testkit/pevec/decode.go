package pevec

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// AMD64Fields are the fields of a decode line of x64, as its source prints
// them.
type AMD64Fields struct {
	Version, Flags, Prolog, Count int
	FrameReg                      int     `json:"frame_reg"`
	FrameOff                      int     `json:"frame_off"` // bytes
	Codes                         [][]any // [offset, name, info, operand or nil]
	Chain                         []string
	Handler                       *string // hex RVA, nil = none
}

// ARM64Fields are the fields of a decode line of ARM64: those of an .xdata
// record, or of a packed word.
type ARM64Fields struct {
	Length, Version, X, E, Epilogs, Codewords int
	Scopes                                    [][3]uint32 // start, reserved, index
	Extended                                  bool
	Codes                                     [][2]string // name, hex
	Handler                                   *string     // hex RVA, nil = none
	CR, Flag, H, RegF, RegI                   int
	FrameSize                                 *int `json:"frame_size"` // bytes
}

// DecodeFields reads Fields into one of the two. Numbers of codes keep their text: as floating-point numbers,
// large ones would be printed with an exponent.
func (v *Vector) DecodeFields(fields any) error {
	d := json.NewDecoder(bytes.NewReader(v.Fields))
	d.UseNumber()
	if err := d.Decode(fields); err != nil {
		return fmt.Errorf("pevec: %s: fields: %w", v.ID, err)
	}
	return nil
}

// UnwindRVA is the RVA of a decode line's UNWIND_INFO.
func (v *Vector) UnwindRVA() (uint32, error) {
	var h Hex
	if err := json.Unmarshal(v.Unwind, &h); err != nil {
		return 0, fmt.Errorf("pevec: %s: unwind: %w", v.ID, err)
	}
	if h > 1<<32-1 {
		return 0, fmt.Errorf("pevec: %s: unwind %#x is no RVA", v.ID, uint64(h))
	}
	return uint32(h), nil
}

// LLVMLines are what llvm-readobj prints of a decode-object line's functions,
// in the order of the entries.
func (v *Vector) LLVMLines() (lines [][]string, err error) {
	if err := json.Unmarshal(v.LLVM19, &lines); err != nil {
		return nil, fmt.Errorf("pevec: %s: llvm19: %w", v.ID, err)
	}
	return lines, nil
}
