package judge

import (
	"encoding/hex"
	"fmt"
	"strconv"

	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/report/inspect"
	"github.com/seedwalk/seedwalk/testkit/pevec"
)

// decode compares the fields of one record.
func (x *PE) decode(t *Tally, v *pevec.Vector) error {
	where, values, info, err := "", []Pair(nil), []string(nil), error(nil)
	if v.ARM64() {
		where, values, info, err = decodeARM64(v)
	} else {
		where, values, info, err = decodeAMD64(v)
	}
	if err != nil {
		return err
	}
	verdict := right
	if differ(values) {
		verdict = wrong
	}
	x.r.count(t, verdict, func() Mismatch {
		return Mismatch{ID: v.ID, Where: where, Why: "the fields differ", Values: values, Info: info}
	})
	return nil
}

func decodeARM64(v *pevec.Vector) (where string, values []Pair, text []string, err error) {
	var f pevec.ARM64Fields
	if err := v.DecodeFields(&f); err != nil {
		return "", nil, nil, err
	}
	word := uint32(v.Data)
	where = fmt.Sprintf("rva %x, data %x", uint64(v.Begin), uint64(v.Data))
	var info pearm64.Info
	var fault pearm64.Fault
	var buf pearm64.Buffer
	if word&3 != 0 {
		info, fault = pearm64.DecodePackedInfo(word, &buf)
		values = packedValues(&f, &info)
	} else {
		n, short := pearm64.XdataSize(v.Raw[:min(len(v.Raw), pearm64.XdataHead)])
		if fault = short; fault.OK() {
			info, fault = pearm64.DecodeXdata(v.Raw[:min(n, len(v.Raw))])
		}
		values = xdataValues(&f, &info)
	}
	if fault.OK() {
		fault = info.Check()
	}
	values = append(values, Pair{"fault", "ok", fault.Reason.String()})
	return where, values, inspect.ARM64Data(&info, word), nil
}

func packedValues(f *pevec.ARM64Fields, i *pearm64.Info) []Pair {
	p := &i.Packed
	size := -1
	if f.FrameSize != nil {
		size = *f.FrameSize
	}
	return []Pair{text("flag", f.Flag, p.Flag), text("length", f.Length, p.Length),
		text("RegF", f.RegF, p.RegF), text("RegI", f.RegI, p.RegI),
		text("H", f.H != 0, p.H), text("CR", f.CR, p.CR), text("frame size", size, p.FrameSize)}
}

func text(name string, want, got any) Pair { return Pair{name, fmt.Sprint(want), fmt.Sprint(got)} }

func xdataValues(f *pevec.ARM64Fields, i *pearm64.Info) []Pair {
	out := []Pair{text("length", f.Length, i.Length), text("version", f.Version, i.Version),
		text("X", f.X != 0, i.X), text("E", f.E != 0, i.E),
		text("epilogs", f.Epilogs, i.Epilogs), text("code words", f.Codewords, i.CodeWords),
		text("extended", f.Extended, i.Extended)}
	if f.Handler != nil {
		out = append(out, text("handler", *f.Handler, strconv.FormatUint(uint64(i.Handler), 16)))
	}
	out = append(out, text("scopes", len(f.Scopes), i.Scopes()))
	for k := range min(len(f.Scopes), i.Scopes()) {
		s := i.Scope(k)
		out = append(out, text(fmt.Sprintf("scope %d", k), f.Scopes[k],
			[3]uint32{s.Start, uint32(s.Reserved), s.Index}))
	}
	return append(out, codeValues(f.Codes, i.Codes)...)
}

func codeValues(want [][2]string, codes []byte) []Pair {
	var out []Pair
	for k, w := range want {
		c, _ := pearm64.DecodeCode(codes) // a reserved code has a size and a name too
		n := min(int(max(c.Size, 1)), len(codes))
		out = append(out, text(fmt.Sprintf("code %d", k), w,
			[2]string{c.Op.String(), hex.EncodeToString(codes[:n])}))
		codes = codes[n:]
	}
	return append(out, text("bytes of codes left", 0, len(codes)))
}
