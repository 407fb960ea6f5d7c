package amd64_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/seedwalk/seedwalk/internal/testkit/pevec"
	"github.com/seedwalk/seedwalk/pe/amd64"
)

// fields is the canonical decode of a record.
type fields struct {
	Version, Flags, Prolog, Count int
	FrameReg                      int `json:"frame_reg"`
	FrameOff                      int `json:"frame_off"`
	Codes                         [][4]any
	Chain                         []string
	Handler                       *string
}

func TestDecodeVectors(t *testing.T) {
	codes, chains, handlers := 0, 0, 0
	n, err := pevec.Each("amd64-decode.jsonl.gz", func(v *pevec.Vector) error {
		var want fields
		if err := json.Unmarshal(v.Fields, &want); err != nil {
			return err
		}
		info, fault := amd64.Decode(v.Raw, false)
		if !fault.OK() {
			t.Errorf("%s: %v", v.ID, fault)
			return nil
		}
		if fault := info.Check(amd64.RuntimeFunction{Begin: uint32(v.Begin), End: uint32(v.End)}); !fault.OK() {
			t.Errorf("%s: check: %+v", v.ID, fault)
		}
		got := fmt.Sprint(info.Version, info.Flags, info.Prolog, info.Count, info.FrameReg, info.FrameOffset, codesText(&info))
		if w := fmt.Sprint(want.Version, want.Flags, want.Prolog, want.Count, want.FrameReg, want.FrameOff, want.Codes); got != w {
			t.Errorf("%s:\ngot  %s\nwant %s", v.ID, got, w)
		}
		codes += len(want.Codes)
		if want.Chain != nil {
			chains++
			if got := fmt.Sprintf("[%x %x %x]", info.Parent.Begin, info.Parent.End, info.Parent.Unwind); got != fmt.Sprint(want.Chain) {
				t.Errorf("%s: parent %s, want %v", v.ID, got, want.Chain)
			}
		}
		if want.Handler != nil {
			handlers++
			if got := strconv.FormatUint(uint64(info.Handler), 16); got != *want.Handler {
				t.Errorf("%s: handler %s, want %s", v.ID, got, *want.Handler)
			}
		}
		return nil
	})
	if errors.Is(err, pevec.ErrAbsent) {
		t.Skip("SKIPPED-CHECK: ", err)
	}
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	t.Logf("amd64-decode: %d records, %d codes, %d parents, %d handlers", n, codes, chains, handlers)
}

// codesText gives codes the form of the vectors' fields.
func codesText(i *amd64.Info) (out [][4]any) {
	for b := i.Codes; len(b) > 0; {
		c, why := i.Code(b)
		if why != amd64.OK {
			return append(out, [4]any{why})
		}
		row := [4]any{c.Offset, c.Op.String(), c.Info, nil}
		if c.HasOperand() {
			row[3] = c.Operand
		}
		out = append(out, row)
		b = b[c.Size():]
	}
	return out
}
