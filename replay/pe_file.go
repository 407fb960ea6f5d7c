package replay

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/seedwalk/seedwalk/inspect"
	"github.com/seedwalk/seedwalk/pe"
)

// amd64Record is a decode line of x64.
type amd64Record struct {
	ID                      string
	Begin, End, Unwind, Raw string
	Fields                  struct {
		Version, Flags, Prolog, Count int
		FrameReg                      int `json:"frame_reg"`
		FrameOff                      int `json:"frame_off"`
		Codes                         [][]any
		Chain                         []string
		Handler                       *string
	}
}

func decodeAMD64(data []byte) (id, where string, values []Pair, lines []string, err error) {
	var v amd64Record
	if err := json.Unmarshal(data, &v); err != nil {
		return "", "", nil, nil, err
	}
	where = "rva " + v.Begin + ", unwind " + v.Unwind
	raw, err := hex.DecodeString(v.Raw)
	if err != nil {
		return v.ID, where, nil, nil, err
	}
	var rva [3]uint64
	for i, s := range []string{v.Begin, v.End, v.Unwind} {
		if rva[i], err = strconv.ParseUint(s, 16, 32); err != nil {
			return v.ID, where, nil, nil, err
		}
	}
	fn := pe.RuntimeFunction{Begin: uint32(rva[0]), End: uint32(rva[1]), Unwind: uint32(rva[2])}
	i, fault := pe.DecodeAMD64(raw, false)
	if fault.OK() {
		fault = i.Check(fn)
	}
	f := &v.Fields
	values = []Pair{text("version", f.Version, i.Version), text("flags", f.Flags, i.Flags), text("prolog", f.Prolog, i.Prolog), text("count", f.Count, i.Count),
		text("frame register", f.FrameReg, i.FrameReg), text("frame offset", f.FrameOff, i.FrameOffset), text("fault", "ok", fault.Reason)}
	if f.Handler != nil {
		values = append(values, text("handler", *f.Handler, strconv.FormatUint(uint64(i.Handler), 16)))
	}
	if f.Chain != nil {
		p := i.Parent
		values = append(values, text("chain", f.Chain, []string{fmt.Sprintf("%x", p.Begin), fmt.Sprintf("%x", p.End), fmt.Sprintf("%x", p.Unwind)}))
	}
	return v.ID, where, append(values, amd64Codes(&v, &i)...), inspect.AMD64Data(&i, fn), nil
}

// amd64Codes compares the codes one by one.
func amd64Codes(v *amd64Record, i *pe.AMD64Info) []Pair {
	var out []Pair
	codes := i.Codes
	for k, want := range v.Fields.Codes {
		c, why := i.Code(codes)
		if why != pe.OK {
			return append(out, text(fmt.Sprintf("code %d", k), want, why))
		}
		codes = codes[c.Size():]
		got := []any{c.Offset, c.Op.String(), c.Info, nil}
		if c.HasOperand() {
			got[3] = c.Operand
		}
		out = append(out, text(fmt.Sprintf("code %d", k), want, got))
	}
	return append(out, text("bytes of codes left", 0, len(codes)))
}

// info describes the unwind data that applies at rva of the loaded image.
func (x *peRun) info(v *peVector, rva uint32) []string {
	if x.file == nil {
		return nil
	}
	f := inspect.FromPE(x.file)
	d, err := f.At(fmt.Sprintf("0x%x", rva))
	if err != nil {
		return []string{err.Error()}
	}
	out := append([]string{d.From}, d.Notes...)
	out = append(out, d.Data...)
	for _, l := range d.Lines {
		if l.Addr == uint64(rva) {
			out = append(out, fmt.Sprintf("in the %s: cfa %s; %s", l.Part, l.CFA, l.Saved))
		}
	}
	return out
}
