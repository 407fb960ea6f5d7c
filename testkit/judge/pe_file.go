package judge

import (
	"fmt"
	"strconv"

	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/report/inspect"
	"github.com/seedwalk/seedwalk/testkit/pevec"
)

func decodeAMD64(v *pevec.Vector) (where string, values []Pair, lines []string, err error) {
	var f pevec.AMD64Fields
	if err := v.DecodeFields(&f); err != nil {
		return "", nil, nil, err
	}
	unwind, err := v.UnwindRVA()
	if err != nil {
		return "", nil, nil, err
	}
	where = fmt.Sprintf("rva %x, unwind %x", uint64(v.Begin), unwind)
	fn := peamd64.RuntimeFunction{Begin: uint32(v.Begin), End: uint32(v.End), Unwind: unwind}
	i, fault := peamd64.Decode(v.Raw, false)
	if fault.OK() {
		fault = i.Check(fn)
	}
	values = []Pair{text("version", f.Version, i.Version), text("flags", f.Flags, i.Flags),
		text("prolog", f.Prolog, i.Prolog), text("count", f.Count, i.Count),
		text("frame register", f.FrameReg, i.FrameReg), text("frame offset", f.FrameOff, i.FrameOffset),
		text("fault", "ok", fault.Reason)}
	if f.Handler != nil {
		values = append(values, text("handler", *f.Handler, strconv.FormatUint(uint64(i.Handler), 16)))
	}
	if f.Chain != nil {
		p := i.Parent
		values = append(values, text("chain", f.Chain,
			[]string{fmt.Sprintf("%x", p.Begin), fmt.Sprintf("%x", p.End), fmt.Sprintf("%x", p.Unwind)}))
	}
	return where, append(values, amd64Codes(&f, &i)...), inspect.AMD64Data(&i, fn), nil
}

// amd64Codes compares the codes one by one.
func amd64Codes(f *pevec.AMD64Fields, i *peamd64.Info) []Pair {
	var out []Pair
	codes := i.Codes
	for k, want := range f.Codes {
		c, why := i.Code(codes)
		if why != peamd64.OK {
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
func (x *PE) info(rva uint32) []string {
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
