package inspect

import (
	"fmt"

	"github.com/seedwalk/seedwalk/context"
	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
)

func (r *peReader) functionARM64(rva uint32) (*Function, error) {
	var buf pearm64.Buffer
	var info pearm64.Info
	begin, found, fault := r.f.ARM64().Find(rva, &buf, &info)
	if !found {
		return nil, fmt.Errorf("no entry covers %#x: a leaf function, or no code", rva)
	}
	i := r.f.ARM64().Index(rva)
	fn := r.f.ARM64().Entry(i)
	f := &Function{Name: r.name(begin), Lo: uint64(begin), Hi: uint64(begin) + uint64(info.Length),
		Asked: uint64(rva), Arch: context.ArchARM64}
	f.From = fmt.Sprintf(".pdata entry %d of %d, data %08x", i, r.entries(), fn.Data)
	if !fault.OK() {
		f.Notes = append(f.Notes, fault.Err("unwind data", fn.Data).Error())
		return f, nil
	}
	f.Data = ARM64Data(&info, fn.Data)
	if fault := info.Check(); !fault.OK() {
		f.Notes = append(f.Notes, fault.Err("unwind data", fn.Data).Error())
	}
	r.code(f, func(rva uint32) (part, cfa, saved string) {
		codes, where, fault := info.At(rva - begin)
		if !fault.OK() {
			return "", "?", fault.Reason.String()
		}
		cfa, saved = ARM64Effect(codes)
		return where.String(), cfa, saved
	})
	return f, nil
}

func (r *peReader) checkARM64(c *checker) {
	dir := r.f.ExceptionDirectory()
	if n := len(dir) % pearm64.EntrySize; n != 0 {
		c.add(Malformed, "bytes left behind the last entry", n, nil)
	}
	var end uint64
	var buf pearm64.Buffer
	for i := range r.entries() {
		fn := r.f.ARM64().Entry(i)
		where := func() string { return fmt.Sprintf("entry %d at rva %#x, data %08x", i, fn.Begin, fn.Data) }
		if uint64(fn.Begin) < end {
			c.add(Overlapping, "entries that begin inside the one before", 1, where)
		}
		if !r.executable(fn.Begin) {
			c.add(Contradictory, "entries outside the executable sections", 1, where)
		}
		info, fault := r.f.ARM64().Decode(fn, &buf)
		if fault.OK() {
			fault = info.Check()
		}
		if fault.OK() && info.Length == 0 {
			c.add(Contradictory, "entries of no length", 1, where)
		}
		if !fault.OK() {
			class := Malformed
			if fault.Reason.Unsupported() {
				class = Unsupported
			}
			c.add(class, fault.Reason.String(), 1, func() string {
				return fmt.Sprintf("%s: offset %#x, value %#x", where(), fault.Offset, fault.Value)
			})
		}
		end = max(end, uint64(fn.Begin)+uint64(info.Length))
	}
}
