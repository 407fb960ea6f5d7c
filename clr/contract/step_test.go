package contract

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

const (
	stackAt  = 0x7ffe_0000_0000
	method   = mapBase + 0x40
	returnTo = mapBase + 0x200
)

// words returns a stack of numbered words: word i holds 0x1000+i, except those in set.
func words(set map[int]uint64) *memory.Window {
	f := newFake()
	for i := range 64 {
		v := uint64(0x1000 + i)
		if s, ok := set[i]; ok {
			v = s
		}
		f.u64(8*uint64(i), v)
	}
	data := make([]byte, 64*8)
	f.ReadAt(data, 0)
	return memory.New(memory.Run{Addr: stackAt, Data: data})
}

func word(i int) uint64 { return stackAt + 8*uint64(i) }

// info writes an UNWIND_INFO: prologue size, frame register and offset, slots.
func info(flags, prolog, frame byte, slots ...byte) []byte {
	b := append([]byte{1 | flags<<3, prolog, byte(len(slots) / 2), frame}, slots...)
	if len(slots)/2%2 != 0 {
		b = append(b, 0, 0)
	}
	return b
}

const (
	rbx = context.RBX
	rbp = context.RBP
	r12 = context.R12
	r14 = context.R14
	r15 = context.R15
)

func TestStep(t *testing.T) {
	pushes := []byte{4, r14 << 4, 2, rbx << 4, 1, rbp << 4} // push rbp; push rbx; push r14
	sub := append([]byte{8, 3<<4 | 2}, pushes...)           // sub rsp, 32
	for _, c := range []struct {
		name  string
		info  []byte
		at    uint64 // offset of the ip
		code  []byte // there
		exact bool
		bp    int // RBP is the address of this word
		r12   int // R12 too, if it is not 0
		sp    int // caller's SP: a word
		saved map[int]int
		trust unwind.Trust
		stop  unwind.Stop
	}{
		{name: "leaf", info: info(0, 0, 0), at: 3, sp: 1, trust: unwind.TrustUnwindInfo},
		{name: "pushes and a small frame", info: info(0, 8, 0, sub...), at: 20, sp: 8,
			saved: map[int]int{r14: 4, rbx: 5, rbp: 6}, trust: unwind.TrustUnwindInfo},
		{name: "in the prologue", info: info(0, 8, 0, sub...), at: 2, exact: true, sp: 3,
			saved: map[int]int{rbx: 0, rbp: 1}, trust: unwind.TrustUnwindInfo},
		{name: "before the prologue", info: info(0, 8, 0, sub...), at: 0, exact: true, sp: 1,
			trust: unwind.TrustUnwindInfo},
		{name: "large frame, scaled", info: info(0, 7, 0, 7, 0<<4|1, 20, 0), at: 9, sp: 21,
			trust: unwind.TrustUnwindInfo},
		{name: "large frame, 32 bits", info: info(0, 7, 0, 7, 1<<4|1, 160, 0, 0, 0), at: 9, sp: 21,
			trust: unwind.TrustUnwindInfo},
		{name: "frame register", info: info(0, 8, rbp, 4, 3, 1, rbp<<4), at: 9, bp: 10, sp: 12,
			saved: map[int]int{rbp: 10}, trust: unwind.TrustUnwindInfo},
		{name: "frame register with an offset", info: info(0, 8, rbp|2<<4, 4, 3, 1, rbp<<4), at: 9, bp: 14,
			sp: 12, saved: map[int]int{rbp: 10}, trust: unwind.TrustUnwindInfo},
		{name: "frame register not yet set", info: info(0, 8, rbp, 4, 3, 1, rbp<<4), at: 2, exact: true,
			bp: 40, sp: 2, saved: map[int]int{rbp: 0}, trust: unwind.TrustUnwindInfo},
		{name: "large offset, Unix", info: info(0, 8, rbp|15<<4, 6, 11, 2, 0, 0, 0, 1, rbp<<4), at: 9, bp: 14,
			sp: 12, saved: map[int]int{rbp: 10}, trust: unwind.TrustUnwindInfo},
		{name: "saved by moves", info: info(0, 8, 0, 8, r12<<4|4, 3, 0, 6, r15<<4|5, 32, 0, 0, 0, 4, 9<<4|2),
			at: 9, sp: 11, saved: map[int]int{r12: 3, r15: 4}, trust: unwind.TrustUnwindInfo},
		{name: "add, pops, ret", info: info(0, 8, 0, sub...), at: 40, exact: true, sp: 8,
			saved: map[int]int{r14: 4, rbx: 5, rbp: 6},
			code:  []byte{0x48, 0x83, 0xc4, 32, 0x41, 0x5e, 0x5b, 0x5d, 0xc3}, trust: unwind.TrustEpilog},
		{name: "one pop left", info: info(0, 8, 0, sub...), at: 40, exact: true,
			sp: 2, saved: map[int]int{rbp: 0},
			code: []byte{0x5d, 0xc3}, trust: unwind.TrustEpilog},
		{name: "lea from the frame register", info: info(0, 8, rbp, 4, 3, 1, rbp<<4), at: 40, exact: true,
			bp: 20, sp: 20, saved: map[int]int{rbx: 18, 0: 0},
			code: []byte{0x48, 0x8d, 0x65, 0xf0, 0x5b, 0xc3}, trust: unwind.TrustEpilog},
		{name: "tail jump out", info: info(0, 8, 0, sub...), at: 40, exact: true,
			sp: 2, saved: map[int]int{rbp: 0},
			code: []byte{0x5d, 0xe9, 0, 1, 0, 0}, trust: unwind.TrustEpilog},
		{name: "tail jump through memory", info: info(0, 8, 0, sub...), at: 40, exact: true,
			sp: 2, saved: map[int]int{rbp: 0},
			code: []byte{0x5d, 0xff, 0x25, 1, 2, 3, 4}, trust: unwind.TrustEpilog},
		{name: "tail jump by a register", info: info(0, 8, 0, sub...), at: 40, exact: true,
			sp: 2, saved: map[int]int{rbp: 0},
			code: []byte{0x5d, 0x48, 0xff, 0xe0}, trust: unwind.TrustEpilog},
		{name: "lea from r12, which takes one more byte", info: info(0, 8, r12, 4, 3, 1, rbp<<4), at: 40,
			exact: true, r12: 20, sp: 20, saved: map[int]int{rbx: 18, 0: 0},
			code: []byte{0x49, 0x8d, 0x64, 0x24, 0xf0, 0x5b, 0xc3}, trust: unwind.TrustEpilog},
		{name: "pop with an empty prefix", info: info(0, 8, 0, sub...), at: 40, exact: true,
			sp: 2, saved: map[int]int{rbp: 0},
			code: []byte{0x40, 0x5d, 0xc3}, trust: unwind.TrustEpilog},
		{name: "ret with a repeat prefix", info: info(0, 8, 0, sub...), at: 40, exact: true, sp: 1,
			code: []byte{0xf3, 0xc3}, trust: unwind.TrustEpilog},
		{name: "jump with a repeat prefix is no epilogue", info: info(0, 8, 0, sub...), at: 40, exact: true,
			sp: 8, saved: map[int]int{r14: 4, rbx: 5, rbp: 6},
			code: []byte{0xf3, 0xe9, 0, 1, 0, 0}, trust: unwind.TrustUnwindInfo},
		{name: "pop, then no end", info: info(0, 8, 0, sub...), at: 40, exact: true, sp: 8,
			saved: map[int]int{r14: 4, rbx: 5, rbp: 6},
			code:  []byte{0x5d, 0x90}, trust: unwind.TrustUnwindInfo},
		{name: "jump inside is no epilogue", info: info(0, 8, 0, sub...), at: 40, exact: true, sp: 8,
			saved: map[int]int{r14: 4, rbx: 5, rbp: 6},
			code:  []byte{0xeb, 4}, trust: unwind.TrustUnwindInfo},
		{name: "switch is no epilogue", info: info(0, 8, 0, sub...), at: 40, exact: true, sp: 8,
			saved: map[int]int{r14: 4, rbx: 5, rbp: 6},
			code:  []byte{0xff, 0xe0}, trust: unwind.TrustUnwindInfo},
		{name: "lea from another register", info: info(0, 8, 0, sub...), at: 40, exact: true, sp: 8,
			saved: map[int]int{r14: 4, rbx: 5, rbp: 6},
			code:  []byte{0x48, 0x8d, 0x63, 0xf0, 0xc3}, trust: unwind.TrustUnwindInfo},
		{name: "operand past the codes", info: info(0, 8, 0, 8, 1<<4|1, 1, 0), at: 9, stop: unwind.BadInfo},
		{name: "no frame register to set from", info: info(0, 8, 0, 4, 3), at: 9, stop: unwind.BadInfo},
		{name: "machine frame", info: info(0, 8, 0, 4, 10), at: 9, stop: unwind.Unsupported},
		{name: "frame off the stack", info: info(0, 7, 0, 7, 1<<4|1, 0, 0, 0, 0x70),
			at: 9, stop: unwind.Unreadable},
		{name: "frame register unknown", info: info(0, 8, r12, 4, 3), at: 9, stop: unwind.Unreadable},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := world([]body{{rel: 0x40, size: 0x60, info: c.info}}, false)
			f.zero(method, 0x100)
			f.put(method+c.at, c.code...)
			mem := words(map[int]uint64{max(c.sp-1, 0): returnTo})
			regs := context.AMD64{RIP: method + c.at, Known: 1<<rbp | 1<<context.RSP}
			regs.GPR[context.RSP], regs.GPR[rbp] = stackAt, word(c.bp)
			if c.r12 != 0 {
				regs.GPR[r12], regs.Known = word(c.r12), regs.Known|1<<r12
			}
			before := regs
			var fr unwind.Frame
			trust, stop := stepOf(managed.New(f.tables(false)), &regs, c.exact, mem, &fr)
			must.True(t, stop == c.stop && trust == c.trust,
				"%v %v, want %v %v", trust, stop, c.trust, c.stop)
			if stop != unwind.StopNone {
				expect.True(t, regs == before && fr.CFA == 0,
					"a failed step changed the registers or gave a CFA: %+v", fr)
				return
			}
			expect.True(t, regs.RIP == returnTo && regs.SP() == word(c.sp) && fr.CFA == regs.SP() &&
				fr.Kind == unwind.KindManaged,
				"rip %#x sp %#x, want %#x %#x; %+v", regs.RIP, regs.SP(), returnTo, word(c.sp), fr)
			for reg, at := range c.saved {
				if reg != 0 && (regs.GPR[reg] != uint64(0x1000+at) || regs.Known>>reg&1 == 0) {
					t.Errorf("register %d is %#x, want word %d", reg, regs.GPR[reg], at)
				}
			}
		})
	}
}

// All codes of the parent of a chained entry apply; a chain to itself ends.
func TestChain(t *testing.T) {
	for _, c := range []struct {
		name   string
		parent uint32
		stop   unwind.Stop
	}{{"parent", atInfo - codeBase + 0x80, unwind.StopNone}, {"itself", atInfo - codeBase, unwind.BadInfo},
		{"nowhere", 0xfffffff0, unwind.BadInfo}} {
		child := info(peamd64.UNW_FLAG_CHAININFO, 0, 0)
		child = append(child, make([]byte, 8)...)
		child = append(child, byte(c.parent), byte(c.parent>>8), byte(c.parent>>16), byte(c.parent>>24))
		f := world([]body{{rel: 0x40, size: 0x60, info: child}}, false)
		f.put(atInfo+0x80, info(0, 200, 0, 100, 2<<4|2, 50, rbx<<4)...)
		regs := context.AMD64{RIP: method + 1, Known: 1 << context.RSP}
		regs.GPR[context.RSP] = stackAt
		var fr unwind.Frame
		_, stop := stepOf(managed.New(f.tables(false)), &regs, false, words(map[int]uint64{4: returnTo}), &fr)
		if stop != c.stop || stop == unwind.StopNone && (regs.SP() != word(5) || regs.GPR[rbx] != 0x1003) {
			t.Errorf("%s: %v sp %#x rbx %#x", c.name, stop, regs.SP(), regs.GPR[rbx])
		}
	}
}

// A jump from a fragment into the body of a function, or into another fragment, is not an epilogue; one to a
// function's first byte is.
func TestJumpToFragment(t *testing.T) {
	const fragment, other = mapBase + 0x400, mapBase + 0x800
	child := func(b body, parent uint64) body {
		b.info = append(info(peamd64.UNW_FLAG_CHAININFO, 0, 0),
			make([]byte, functionSize(context.ArchAMD64))...)
		binary.LittleEndian.PutUint32(b.info[4:], uint32(parent-codeBase))
		binary.LittleEndian.PutUint32(b.info[12:], atInfo-codeBase)
		return b
	}
	f := world([]body{
		{rel: 0x40, size: 0x60, info: info(0, 8, 0, 8, 3<<4|2)},
		child(body{rel: 0x400, size: 0x60}, method),
		child(body{rel: 0x800, size: 0x60}, method),
		{rel: 0xc00, size: 0x60},
	}, false)
	for name, c := range map[string]struct {
		to    uint64
		trust unwind.Trust
	}{
		"into the body":           {method + 0x20, unwind.TrustUnwindInfo},
		"into another fragment":   {other, unwind.TrustUnwindInfo},
		"to the first byte":       {method, unwind.TrustEpilog},
		"into another method":     {mapBase + 0xc20, unwind.TrustUnwindInfo},
		"to another's first byte": {mapBase + 0xc00, unwind.TrustEpilog},
		"to where nothing is":     {codeEnd + 0x4000000, unwind.TrustEpilog},
		"to the fragment's begin": {fragment, unwind.TrustUnwindInfo},
	} {
		f.zero(fragment, 0x200)
		f.put(fragment+8, 0xe9)
		f.u32(fragment+9, uint32(c.to-(fragment+13)))
		regs := context.AMD64{RIP: fragment + 8, Known: 1 << context.RSP}
		regs.GPR[context.RSP] = stackAt
		var fr unwind.Frame
		trust, stop := stepOf(managed.New(f.tables(false)), &regs, true, words(nil), &fr)
		expect.True(t, trust == c.trust && stop == unwind.StopNone,
			"%s: %v %v, want %v", name, trust, stop, c.trust)
	}
}

func TestStubs(t *testing.T) {
	const inMethod, native = method + 5, 0x55550000_1000
	for _, c := range []struct {
		name  string
		kind  uint64
		ip    uint64
		exact bool
		stack map[int]uint64
		sp    int // 0: it cannot be left
	}{
		{"precode", 4, 0, true, map[int]uint64{0: inMethod}, 1},
		{"precode called by native code", 4, 0, true, map[int]uint64{0: native}, 1},
		{"nothing like a return address", 4, 0, true, nil, 0},
		{"resolve stub before its push", 7, 0, true, map[int]uint64{0: inMethod}, 1},
		{"resolve stub after its push", 7, 0, true, map[int]uint64{1: inMethod}, 2},
		{"another stub pushes nothing", 6, 0, true, map[int]uint64{1: inMethod}, 0},
		{"a stub never calls", 4, 0, false, map[int]uint64{0: inMethod}, 0},
		{"code outside all sections", 4, codeEnd + 0x4000000, true, map[int]uint64{0: inMethod}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := world([]body{{rel: 0x40, size: 0x60}, {rel: 0x400, size: 0x20, stub: c.kind}}, false)
			f.zero(native-16, 16)
			f.put(native-5, 0xe8)
			regs := context.AMD64{RIP: mapBase + 0x410, Known: context.AMD64All}
			if c.ip != 0 {
				regs.RIP = c.ip
			}
			regs.GPR[context.RSP] = stackAt
			var fr unwind.Frame
			trust, stop := stepOf(managed.New(f.tables(false)), &regs, c.exact, words(c.stack), &fr)
			if c.sp == 0 {
				expect.Equal(t, stop, unwind.NoInfo, trust)
				return
			}
			expect.True(t, trust == unwind.TrustLeaf && stop == unwind.StopNone && regs.SP() == word(c.sp) &&
				regs.RIP == c.stack[c.sp-1] && fr.Kind == unwind.KindStub,
				"%v %v rip %#x sp %#x %+v", trust, stop, regs.RIP, regs.SP(), fr)
		})
	}
}

func TestHijacked(t *testing.T) {
	f := world(plain, false)
	const thread, slot = 0x80_0000, stackAt + 64
	f.zero(thread, 1024)
	f.put(method+5-5, 0xe8)
	f.put(method+1, 0, 0, 0, 0)
	f.u64(thread+40, 0x1234, slot) // not a method
	tables := managed.New(f.tables(false))
	ra, ok := tables.Hijacked(thread, slot)
	expect.True(t, !ok, "%#x", ra)
	f.u64(thread+152, method+5, slot)
	ra, ok = tables.Hijacked(thread, slot)
	expect.True(t, ok && ra == method+5, "%#x %v", ra, ok)
	_, ok = tables.Hijacked(0x90_0000, slot)
	expect.True(t, !ok, "a thread that is gone")
}

// A warm step allocates nothing.
func TestNoAllocations(t *testing.T) {
	f := world([]body{{rel: 0x40, size: 0x60}}, false)
	tables, mem := managed.New(f.tables(false)), words(map[int]uint64{0: returnTo})
	at := &unwind.State{Regs: &context.Registers{Arch: context.ArchAMD64}}
	regs := &at.Regs.AMD64
	fr := &unwind.Frame{}
	step := func() {
		at.Exact, at.Trust = false, unwind.TrustCLR
		regs.RIP, regs.GPR[context.RSP], regs.Known = method+5, stackAt, context.AMD64All
		must.Equal(t, tables.Step(at, mem, &unwind.Bounds{}, fr), unwind.StopNone)
	}
	expect.Equal(t, testing.AllocsPerRun(100, step), 0, "allocations")
}

// Missing, unknown, or endless unwind data ends a step, but the lookup succeeds.
func TestHostileUnwindData(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(f *fake)
		want  unwind.Stop
	}{
		{"nothing spoilt", func(f *fake) {}, unwind.StopNone},
		{"version 3", func(f *fake) { f.put(atInfo, 3) }, unwind.Unsupported},
		{"version 7", func(f *fake) { f.put(atInfo, 7) }, unwind.BadInfo},
		{"codes unmapped", func(f *fake) { f.put(atInfo, 1, 0, 255, 0) }, unwind.NoInfo},
		{"information unmapped", func(f *fake) { f.u32(atHeader+36+8, 0x9000) }, unwind.NoInfo},
		{"indirect for ever", func(f *fake) {
			f.u32(atHeader+36+8, 0x9001)
			f.u32(codeBase+0x9000, 0, 0, 0x9001)
		}, unwind.NoInfo},
		{"one indirection", func(f *fake) {
			f.u32(atHeader+36+8, 0x9001)
			f.u32(codeBase+0x9000, 0x140, 0x1a0, atInfo-codeBase)
		}, unwind.StopNone},
	} {
		f := world([]body{{rel: 0x40, size: 0x60}}, false)
		c.spoil(f)
		regs := context.AMD64{RIP: method + 5, Known: 1 << context.RSP}
		regs.GPR[context.RSP] = stackAt
		var fr unwind.Frame
		_, stop := stepOf(managed.New(f.tables(false)), &regs, false, words(map[int]uint64{0: returnTo}), &fr)
		expect.True(t, stop == c.want, "%s: %v, want %v", c.name, stop, c.want)
	}
}

// stepOf makes a step of t from regs, which become the caller's, and returns the trust in the result.
func stepOf(t *managed.Tables, regs *context.AMD64, exact bool, mem *memory.Window,
	f *unwind.Frame) (unwind.Trust, unwind.Stop) {
	r := context.FromAMD64(*regs)
	s := unwind.State{Regs: &r, Exact: exact, Trust: unwind.TrustCLR}
	stop := t.Step(&s, mem, &unwind.Bounds{}, f)
	if stop != unwind.StopNone {
		return unwind.TrustNone, stop
	}
	*regs = r.AMD64
	return s.Trust, stop
}

// Only the unwind data of an ARM64 function contain its length.
func TestFunctionARM64(t *testing.T) {
	const at = 0x40
	for _, c := range []struct {
		name  string
		spoil func(f *fake)
		rel   uint64
		want  Reason
		end   uint64
	}{
		{"by its record", func(*fake) {}, at + 0x5c, Found, at + 0x60},
		{"behind it", func(*fake) {}, at + 0x60, NoMethod, 0},
		{"by a packed word", func(f *fake) { f.u32(atHeader+40, 0x10<<2|1) }, at + 0x3c, Found, at + 0x40},
		{"behind that", func(f *fake) { f.u32(atHeader+40, 0x10<<2|1) }, at + 0x40, NoMethod, 0},
		{"the record is not there", func(f *fake) { f.u32(atHeader+40, 0x123450) }, at, Unreadable, 0},
		{"a record of another version", func(f *fake) { f.u32(atInfo, 0x18|1<<18) }, at, Malformed, 0},
		{"no length", func(f *fake) { f.u32(atInfo, 1<<21|1<<27) }, at, Malformed, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := worldOf(context.ArchARM64, []body{{rel: at, size: 0x60}}, false)
			c.spoil(f)
			var m Method
			r := f.tables(false).Find(mapBase+c.rel, &m)
			if r != c.want || r == Found && (m.Begin != mapBase+at || m.End != mapBase+c.end) {
				t.Errorf("%v, want %v (%+v)", r, c.want, m)
			}
		})
	}
}
