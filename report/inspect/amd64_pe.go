package inspect

import (
	"errors"
	"fmt"

	"github.com/seedwalk/seedwalk/context"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
)

func (r *peReader) countAMD64() []Count {
	indirect, chained, second, frame := 0, 0, 0, 0
	for n := range r.entries() {
		fn := r.f.AMD64().Entry(n)
		if fn.Indirect() {
			indirect++
		}
		fn, why := r.f.AMD64().Resolve(fn)
		i, fault := r.f.AMD64().Info(fn.Unwind)
		if why != peamd64.OK || !fault.OK() {
			continue
		}
		if i.Chained() {
			chained++
		}
		if i.Version == 2 {
			second++
		}
		if i.FrameReg != 0 {
			frame++
		}
	}
	return []Count{{"indirect entries", indirect}, {"chained entries", chained},
		{"entries of version 2", second}, {"entries with a frame register", frame}}
}

func (r *peReader) functionAMD64(rva uint32) (*Function, error) {
	entry, ok := r.f.AMD64().Lookup(rva)
	if !ok {
		return nil, fmt.Errorf("no entry covers %#x: a leaf function, or no code", rva)
	}
	f := &Function{Name: r.name(entry.Begin), Lo: uint64(entry.Begin), Hi: uint64(entry.End),
		Asked: uint64(rva), Arch: context.ArchAMD64}
	f.From = fmt.Sprintf("RUNTIME_FUNCTION [%#x,%#x), unwind %#x", entry.Begin, entry.End, entry.Unwind)
	fn, why := r.f.AMD64().Resolve(entry)
	if entry.Indirect() {
		f.Notes = append(f.Notes,
			fmt.Sprintf("indirect: stands for [%#x,%#x), unwind %#x", fn.Begin, fn.End, fn.Unwind))
	}
	if why != peamd64.OK {
		f.Notes = append(f.Notes, why.String())
		return f, nil
	}
	if err := r.f.AMD64().Check(entry); err != nil {
		f.Notes = append(f.Notes, err.Error())
	}
	r.chain(f, fn)
	i, fault := r.f.AMD64().Info(fn.Unwind)
	if !fault.OK() {
		return f, nil // the notes say why
	}
	epilogs := r.epilogs(f, &i, fn)
	r.code(f, func(rva uint32) (part, cfa, saved string) {
		if e, ok := epilogs[rva]; ok {
			return "epilog", e[0], e[1]
		}
		cfa, saved = amd64Rules(r.f, fn, rva)
		if rva-fn.Begin < uint32(i.Prolog) {
			return "prolog", cfa, saved
		}
		return "body", cfa, saved
	})
	return f, nil
}

// chain adds the data of an entry, and of all entries to which it is chained.
func (r *peReader) chain(f *Function, fn peamd64.RuntimeFunction) {
	for range 33 {
		i, fault := r.f.AMD64().Info(fn.Unwind)
		if !fault.OK() {
			f.Data = append(f.Data, fmt.Sprintf("UNWIND_INFO at %#x: %s", fn.Unwind, fault.Reason))
			return
		}
		f.Data = append(f.Data, AMD64Data(&i, fn)...)
		if !i.Chained() {
			return
		}
		var why peamd64.Reason
		if fn, why = r.f.AMD64().Resolve(i.Parent); why != peamd64.OK {
			f.Data = append(f.Data, "parent: "+why.String())
			return
		}
	}
}

func (r *peReader) checkAMD64(c *checker) {
	dir := r.f.ExceptionDirectory()
	if n := len(dir) % peamd64.EntrySize; n != 0 {
		c.add(Malformed, "bytes left behind the last entry", n, nil)
	}
	var last peamd64.RuntimeFunction
	for n := range r.entries() {
		fn := r.f.AMD64().Entry(n)
		where := func() string {
			return fmt.Sprintf("entry %d: [%#x,%#x), unwind %#x", n,
				fn.Begin, fn.End, fn.Unwind)
		}
		if fn.Begin < last.Begin {
			c.add(Contradictory, "entries that begin before the one before", 1, where)
		} else if fn.Begin < last.End {
			c.add(Overlapping, "entries that begin inside the one before", 1, where)
		}
		last = fn
		if !r.executable(fn.Begin) {
			c.add(Contradictory, "entries outside the executable sections", 1, where)
		}
		err := r.f.AMD64().Check(fn)
		var format *peamd64.Error
		if errors.As(err, &format) {
			class := Malformed
			switch {
			case format.Fault.Reason.Unsupported():
				class = Unsupported
			case format.Fault.Reason.Walkable():
				class = Contradictory
			}
			c.add(class, format.Structure+": "+format.Fault.Reason.String(), 1,
				func() string { return where() + ": " + err.Error() })
		}
	}
}
