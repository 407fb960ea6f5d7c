package replay

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/seedwalk/seedwalk/inspect"
	"github.com/seedwalk/seedwalk/pe"
)

// decode compares the fields of one record.
func (x *peRun) decode(name, arch string, data []byte) error {
	t := x.r.tally(name, true)
	var id, where string
	var values []Pair
	var info []string
	var err error
	if arch == "arm64" {
		id, where, values, info, err = decodeARM64(data)
	} else {
		id, where, values, info, err = decodeAMD64(data)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	v := right
	if differ(values) {
		v = wrong
	}
	x.r.count(t, v, func() Mismatch {
		return Mismatch{ID: id, Where: where, Why: "the fields differ", Values: values, Info: info}
	})
	return nil
}

// arm64Record is a decode line of ARM64.
type arm64Record struct {
	ID     string
	Begin  string
	Data   string
	Raw    string
	Fields struct {
		Length, Version, X, E, Epilogs, Codewords int
		Scopes                                    [][3]uint32
		Extended                                  bool
		Codes                                     [][2]string
		Handler                                   *string
		CR, Flag, H, RegF, RegI                   int
		FrameSize                                 *int `json:"frame_size"`
	}
}

func decodeARM64(data []byte) (id, where string, values []Pair, text []string, err error) {
	var v arm64Record
	if err := json.Unmarshal(data, &v); err != nil {
		return "", "", nil, nil, err
	}
	word, err := strconv.ParseUint(v.Data, 16, 32)
	if err != nil {
		return v.ID, "", nil, nil, err
	}
	where = "rva " + v.Begin + ", data " + v.Data
	var info pe.ARM64Info
	var fault pe.ARM64Fault
	var buf pe.ARM64Buffer
	if word&3 != 0 {
		info, fault = pe.DecodeARM64PackedInfo(uint32(word), &buf)
		values = packedValues(&v, &info)
	} else {
		raw, err := hex.DecodeString(v.Raw)
		if err != nil {
			return v.ID, where, nil, nil, err
		}
		n, f := pe.ARM64XdataSize(raw[:min(len(raw), pe.ARM64XdataHead)])
		if fault = f; fault.OK() {
			info, fault = pe.DecodeARM64Xdata(raw[:min(n, len(raw))])
		}
		values = xdataValues(&v, &info)
	}
	if fault.OK() {
		fault = info.Check()
	}
	values = append(values, Pair{"fault", "ok", fault.Reason.String()})
	return v.ID, where, values, inspect.ARM64Data(&info, uint32(word)), nil
}

func packedValues(v *arm64Record, i *pe.ARM64Info) []Pair {
	f, p := &v.Fields, &i.Packed
	size := -1
	if f.FrameSize != nil {
		size = *f.FrameSize
	}
	return []Pair{text("flag", f.Flag, p.Flag), text("length", f.Length, p.Length), text("RegF", f.RegF, p.RegF), text("RegI", f.RegI, p.RegI),
		text("H", f.H != 0, p.H), text("CR", f.CR, p.CR), text("frame size", size, p.FrameSize)}
}

func text(name string, want, got any) Pair { return Pair{name, fmt.Sprint(want), fmt.Sprint(got)} }

func xdataValues(v *arm64Record, i *pe.ARM64Info) []Pair {
	f := &v.Fields
	out := []Pair{text("length", f.Length, i.Length), text("version", f.Version, i.Version), text("X", f.X != 0, i.X), text("E", f.E != 0, i.E),
		text("epilogs", f.Epilogs, i.Epilogs), text("code words", f.Codewords, i.CodeWords), text("extended", f.Extended, i.Extended)}
	if f.Handler != nil {
		out = append(out, text("handler", *f.Handler, strconv.FormatUint(uint64(i.Handler), 16)))
	}
	out = append(out, text("scopes", len(f.Scopes), i.Scopes()))
	for k := range min(len(f.Scopes), i.Scopes()) {
		s := i.Scope(k)
		out = append(out, text(fmt.Sprintf("scope %d", k), f.Scopes[k], [3]uint32{s.Start, uint32(s.Reserved), s.Index}))
	}
	return append(out, codeValues(f.Codes, i.Codes)...)
}

func codeValues(want [][2]string, codes []byte) []Pair {
	var out []Pair
	for k, w := range want {
		c, _ := pe.DecodeARM64Code(codes) // a reserved code has a size and a name too
		n := min(int(max(c.Size, 1)), len(codes))
		out = append(out, text(fmt.Sprintf("code %d", k), w, [2]string{c.Op.String(), hex.EncodeToString(codes[:n])}))
		codes = codes[n:]
	}
	return append(out, text("bytes of codes left", 0, len(codes)))
}
