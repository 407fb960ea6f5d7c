package managed

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// Caller steps over a learned method without asking the source.
func TestCaller(t *testing.T) {
	const ra, caller = codeAt + 0x20, nativeAt + 32
	for _, c := range []struct {
		name  string
		learn bool
		call  bool // before the address
		exact bool
		stop  unwind.Stop
	}{
		{name: "not learned", call: true, stop: unwind.NoInfo},
		{name: "learned", learn: true, call: true, stop: unwind.StopNone},
		{name: "interrupted", learn: true, call: true, exact: true, stop: unwind.NoInfo},
		{name: "after no call", learn: true, stop: unwind.BadInfo},
	} {
		p := newProcess()
		if c.call {
			p.blocks[codeAt][0x20-5] = 0xe8
		}
		tables, s, mem := New(System{p}), at(ra, c.exact), stack(map[int]uint64{6: caller})
		report := []clr.SnapshotFrame{{IP: ra}} // a marker
		if c.learn {
			report[0].Function = 1
		}
		tables.Learn(report)
		tables.Learn(report)
		asked := p.asked
		expect.Equal(t, tables.Caller(s, mem, nil), c.stop, "%s", c.name)
		if c.stop == unwind.StopNone {
			expect.Equal(t, s.Regs.IP(), caller, "%s: the caller", c.name)
		}
		expect.Equal(t, testing.AllocsPerRun(10, func() {
			s.Regs.SetIP(ra)
			s.Regs.SetSP(stackAt)
			tables.Caller(s, mem, nil)
		}), 0, "%s: allocations", c.name)
		expect.Equal(t, p.asked, asked, "%s: questions to the source", c.name)
	}
}

// What Caller has missed can be learned, if the source has a method there. Forget forgets that it has none.
func TestLearnMissed(t *testing.T) {
	const ra = codeAt + 0x20
	p := newProcess()
	p.blocks[codeAt][0x20-5] = 0xe8
	tables, mem := New(System{p}), stack(map[int]uint64{6: nativeAt + 32})
	for _, c := range []struct {
		ip    uint64
		learn bool
		then  unwind.Stop
	}{{ra, true, unwind.StopNone}, {nativeAt + 64, false, unwind.Unsupported}} {
		expect.Equal(t, tables.Caller(at(c.ip, false), mem, nil), unwind.NoInfo, "%#x, missed", c.ip)
		expect.Equal(t, tables.LearnMissed(), c.learn, "%#x, learned", c.ip)
		expect.Equal(t, tables.Caller(at(c.ip, false), mem, nil), c.then, "%#x, again", c.ip)
	}
	tables.Forget()
	expect.Equal(t, tables.Caller(at(nativeAt+64, false), mem, nil), unwind.NoInfo, "after Forget")
}

// Renew keeps what is used, if its code is still the same, and drops the rest.
func TestRenew(t *testing.T) {
	const ra = codeAt + 0x20
	const small, large = nativeAt + 32, nativeAt + 64 // the callers of frames of 48 and 136 bytes
	for _, c := range []struct {
		name   string
		then   func(p *process)
		stop   unwind.Stop
		caller uint64
	}{
		{"unchanged", func(*process) {}, unwind.StopNone, small},
		{"a larger frame now", func(p *process) { p.blocks[infoAt] = []byte{1, 4, 1, 0, 4, 0xf2, 0, 0} },
			unwind.StopNone, large},
		{"without a call now", func(p *process) { p.blocks[codeAt][0x20-5] = 0x90 }, unwind.BadInfo, 0},
		{"gone", func(p *process) { delete(p.blocks, infoAt) }, unwind.NoInfo, 0},
	} {
		p := newProcess()
		p.blocks[codeAt][0x20-5] = 0xe8
		tables, mem, s := New(System{p}), stack(map[int]uint64{6: small, 16: large}), at(ra, false)
		tables.Learn([]clr.SnapshotFrame{{IP: ra, Function: 1}})
		c.then(p)
		tables.Renew()
		expect.Equal(t, tables.Caller(s, mem, nil), c.stop, c.name)
		if c.stop == unwind.StopNone {
			expect.Equal(t, s.Regs.IP(), c.caller, "%s: the caller", c.name)
		}
	}
}

// What is not used between two calls of Renew is dropped.
func TestRenewDropsUnused(t *testing.T) {
	const ra = codeAt + 0x20
	p := newProcess()
	p.blocks[codeAt][0x20-5] = 0xe8
	tables, mem := New(System{p}), stack(map[int]uint64{6: nativeAt + 32})
	tables.learn(ra)
	for range 5 {
		tables.Renew()
		expect.Equal(t, tables.Caller(at(ra, false), mem, nil), unwind.StopNone, "used")
	}
	tables.Renew()
	tables.Renew()
	expect.Equal(t, tables.Caller(at(ra, false), mem, nil), unwind.NoInfo, "not used")
}

// The addresses that cannot be learned have a bound.
func TestUnlearnedBound(t *testing.T) {
	tables := New(System{newProcess()})
	for i := range uint64(3 * maxCopies) {
		tables.missed = nativeAt + i
		tables.LearnMissed()
	}
	expect.True(t, len(tables.unlearned) <= maxCopies, "%d addresses", len(tables.unlearned))
}

// Caller accepts nil bounds, with and without a cached rule.
func TestCallerUnbounded(t *testing.T) {
	const ra, caller = codeAt + 0x20, nativeAt + 32
	p := newProcess()
	p.blocks[codeAt][0x20-5] = 0xe8
	tables, mem := New(System{p}), stack(map[int]uint64{38: caller})
	tables.learn(ra)
	for range 2 { // the first step caches the rule
		s := at(ra, false)
		s.Regs.SetSP(stackAt + 32*8)
		expect.Equal(t, tables.Caller(s, mem, nil), unwind.StopNone)
		expect.Equal(t, s.Regs.IP(), caller)
	}
}

// If the caller depends on the frame pointer, the stack pointer still shows the size of the frame.
func TestCallerSize(t *testing.T) {
	const ra, frame = codeAt + 0x20, 48 // push rbp; mov rbp, rsp; sub rsp, 32
	for _, c := range []struct {
		size uint64
		stop unwind.Stop
	}{{frame, unwind.StopNone}, {frame + 64, unwind.StopNone}, {frame - 8, unwind.NoProgress}} {
		p := newProcess()
		p.blocks[codeAt][0x20-5] = 0xe8
		p.blocks[infoAt] = []byte{1, 8, 3, 5, 8, 0x32, 4, 3, 1, 0x50, 0, 0}
		tables, s := New(System{p}), at(ra, false)
		tables.learn(ra)
		const cfa = stackAt + 0x100
		s.Regs.SetFP(cfa - 16)
		s.Regs.SetSP(cfa - c.size)
		mem := stack(map[int]uint64{31: nativeAt + 32})
		expect.Equal(t, tables.Caller(s, mem, nil), c.stop, "%d bytes", c.size)
	}
}
