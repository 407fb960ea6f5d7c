package managed

import (
	"github.com/seedwalk/seedwalk/context"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/pe/rva"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
)

// function holds the code at an address, with its unwind data.
type function struct {
	Code
	own peamd64.Table // the copy that Table points to
	// The step from the address. If it makes none, Table decides.
	rule amd64.FunctionRule
	arm  *functionARM64 // of ARM64

	// Of a method at a return address, once it is learned:
	learned bool
	used    bool   // since the last Renew
	called  bool   // the code before the address may be a call
	least   uint64 // size of its frame in bytes, at least
}

// Bounds of the copies.
const (
	maxChain    = 32 // parents, the limit of Windows
	maxIndirect = 4
	pageSize    = 4096
)

// find asks the source for the code at an address and copies its unwind data, or returns an earlier copy.
func (t *Tables) find(at unwind.Address) (*function, unwind.Stop) {
	k := key{at.IP, at.Exact}
	last := &t.last[k.hash()]
	if last.fn != nil && last.key == k {
		return last.fn, unwind.StopNone
	}
	if fn := t.copies[k]; fn != nil {
		*last = lastCopy{k, fn}
		return fn, unwind.StopNone
	}
	if stop := t.src.Code(at, &t.asked); stop != unwind.StopNone {
		return nil, stop
	}
	fn := &function{Code: t.asked}
	if fn.Kind == Method && !t.load(fn, at) {
		return nil, unwind.NoInfo
	}
	if fn.Keep {
		if len(t.copies) >= maxCopies {
			t.Forget()
		}
		t.compile(fn, at)
		t.copies[k], *last = fn, lastCopy{k, fn}
	}
	return fn, unwind.StopNone
}

// compile makes the rule of a method's address. It makes none for a return address that is a method's first
// byte: the caller is then the method before it, which ends in a call that does not return.
func (t *Tables) compile(fn *function, at unwind.Address) {
	if fn.Kind == Method && t.arch == context.ArchAMD64 &&
		(at.Exact || at.IP != fn.Base+uint64(fn.Entry.Begin)) {
		fn.rule = amd64.CompileFunction(fn.Table, fn.Entry, fn.Base, at, len(t.ids))
		t.ids = append(t.ids, fn.Function)
	}
}

// load copies a method's unwind data unless the source provides them. It returns false if they are missing or
// have no RVA.
func (t *Tables) load(fn *function, at unwind.Address) bool {
	if pc := at.IP - fn.Base; pc != uint64(uint32(pc)) {
		return false
	}
	if t.arch == context.ArchARM64 {
		return t.loadARM64(fn)
	}
	if fn.Table != nil {
		return true
	}
	c := copier{t: t, base: fn.Base}
	entry, info, ok := c.function(fn.Entry)
	if !ok {
		return false
	}
	fn.Entry = entry
	if at.Exact {
		c.epilog(entry, info.FrameReg, at.IP)
	}
	fn.own = peamd64.New(c.pdata, rva.Sort(c.blocks), t.src.Unix())
	fn.Table = &fn.own
	return true
}

// copier copies functions of one image, or of one code heap, into blocks.
type copier struct {
	t      *Tables
	base   uint64
	pdata  []byte
	blocks []rva.Block
}

// add copies up to n bytes at an RVA, fewer at a page's end.
func (c *copier) add(at uint32, n int) []byte {
	b, addr := make([]byte, n), c.base+uint64(at)
	if !c.t.src.ReadAt(b, addr) {
		if b = b[:min(uint64(n), pageSize-addr%pageSize)]; !c.t.src.ReadAt(b, addr) {
			return nil
		}
	}
	c.blocks = append(c.blocks, rva.Block{RVA: at, Data: b})
	return b
}

// function copies the UNWIND_INFO of an entry and of the entries that it is chained to. ok is false if its
// own is missing. A chain may end early; a step through it will fail.
func (c *copier) function(fn peamd64.RuntimeFunction) (direct peamd64.RuntimeFunction,
	info peamd64.Info, ok bool) {
	direct = fn
	for link := range maxChain + 1 {
		if fn, ok = c.resolve(fn); !ok {
			break
		}
		i, ok := c.info(fn.Unwind)
		if link == 0 {
			if direct, info = fn, i; !ok {
				return fn, i, false
			}
			c.pdata = append(c.pdata, peamd64.AppendEntry(nil, fn)...)
		}
		if !ok || !i.Chained() {
			break
		}
		fn = i.Parent
	}
	return direct, info, len(c.pdata) > 0
}

// resolve follows indirect entries and copies them.
func (c *copier) resolve(fn peamd64.RuntimeFunction) (peamd64.RuntimeFunction, bool) {
	for range maxIndirect {
		if !fn.Indirect() {
			return fn, true
		}
		b := c.add(fn.Unwind&^1, peamd64.EntrySize)
		if len(b) < peamd64.EntrySize {
			return fn, false
		}
		fn = peamd64.ReadEntry(b)
	}
	return fn, !fn.Indirect()
}

// info copies and decodes the UNWIND_INFO at an RVA. A step detects malformed data.
func (c *copier) info(at uint32) (i peamd64.Info, ok bool) {
	var head [4]byte
	if !c.t.src.ReadAt(head[:], c.base+uint64(at)) {
		return i, false
	}
	b := c.add(at, peamd64.InfoSize(head[:]))
	i, _ = peamd64.Decode(b, c.t.src.Unix())
	return i, b != nil
}

// epilog copies the code that may be the rest of an epilog. If that code ends in a jump to an address outside
// the range of fn, epilog also copies the unwind data of the jump's target. They show whether the target
// belongs to another function.
func (c *copier) epilog(fn peamd64.RuntimeFunction, frameReg uint8, ip uint64) {
	code := c.add(uint32(ip-c.base), amd64.MaxEpilog)
	e, ok := amd64.ReadEpilog(code, frameReg)
	to := ip + e.Target
	if !ok || !e.Jumps || fn.Contains(uint32(to-c.base)) {
		return
	}
	other := &c.t.asked
	if c.t.src.Code(unwind.Instruction(to), other) == unwind.StopNone && other.Kind == Method &&
		other.Base == c.base {
		c.function(other.Entry)
	}
}
