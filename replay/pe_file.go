package replay

import (
	"errors"

	"github.com/seedwalk/seedwalk/inspect"
	"github.com/seedwalk/seedwalk/pe"
)

var errNoPE = errors.New("PE images are not read yet")

func parsePE(data []byte, name string) (*pe.File, error) { return pe.New(data, name) }

func decodeAMD64(data []byte) (id, where string, values []Pair, text []string, err error) {
	return "", "", nil, nil, errNoPE
}

// info describes the unwind data at rva.
func (x *peRun) info(v *peVector, rva uint32) []string {
	if v.Arch != "arm64" {
		return nil
	}
	var out []string
	for i := range v.Functions {
		f := &v.Functions[i]
		var buf pe.ARM64Buffer
		var info pe.ARM64Info
		var fault pe.ARM64Fault
		if f.data&3 != 0 {
			info, fault = pe.DecodeARM64PackedInfo(f.data, &buf)
		} else {
			info, fault = pe.DecodeARM64Xdata(v.codeAt(uint64(f.data), 1<<16))
		}
		if f.begin > rva || fault.OK() && rva-f.begin >= info.Length {
			continue
		}
		out = append(out, inspect.ARM64Data(&info, f.data)...)
		codes, where, at := info.At(rva - f.begin)
		if !fault.OK() || !at.OK() {
			return append(out, "fault: "+fault.Reason.String()+", at: "+at.Reason.String())
		}
		cfa, saved := inspect.ARM64Effect(codes)
		return append(out, "in the "+where.String()+": cfa "+cfa+"; "+saved)
	}
	return append(out, "no entry covers it")
}
