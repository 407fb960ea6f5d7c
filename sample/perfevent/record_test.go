package perfevent

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// rec builds a record of 32-bit and 64-bit fields and bytes.
func rec(kind Type, misc uint16, parts ...any) []byte {
	b := make([]byte, header)
	for _, p := range parts {
		switch p := p.(type) {
		case uint32:
			b = binary.LittleEndian.AppendUint32(b, p)
		case uint64:
			b = binary.LittleEndian.AppendUint64(b, p)
		case []byte:
			b = append(b, p...)
		}
	}
	binary.LittleEndian.PutUint32(b, uint32(kind))
	binary.LittleEndian.PutUint16(b[4:], misc)
	binary.LittleEndian.PutUint16(b[6:], uint16(len(b)))
	return b
}

// numbers returns n words: first, first+1, and so on.
func numbers(first uint64, n int) (b []byte) {
	for i := range n {
		b = binary.LittleEndian.AppendUint64(b, first+uint64(i))
	}
	return b
}

var whole = Layout{Arch: context.ArchAMD64, Regs: true, Stack: true}

func sampleRecord(size, used uint64, stack []byte) []byte {
	return rec(Sample, 2, uint64(0x400000), uint32(7), uint32(8), uint64(99), uint64(2),
		numbers(100, 17), size, stack, used)
}

func TestParseSample(t *testing.T) {
	var r Record
	must.True(t, whole.Parse(sampleRecord(16, 8, numbers(5, 2)), &r), "not parsed")
	if r.IP != 0x400000 || r.PID != 7 || r.TID != 8 || r.Time != 99 || r.Kernel || r.Cut ||
		!bytes.Equal(r.Stack, numbers(5, 1)) {
		t.Errorf("%+v", r)
	}
	regs, ok := r.Registers(context.ArchAMD64)
	g := regs.AMD64
	if !ok || g.GPR[context.RAX] != 100 || g.GPR[context.RBX] != 101 || g.GPR[context.RCX] != 102 ||
		g.GPR[context.RDX] != 103 ||
		g.GPR[context.RSI] != 104 || g.GPR[context.RDI] != 105 || g.GPR[context.RBP] != 106 ||
		g.GPR[context.RSP] != 107 || g.RIP != 108 ||
		g.GPR[context.R8] != 109 || g.GPR[context.R15] != 116 || g.Known != 1<<16-1 {
		t.Errorf("%v %+v", ok, g)
	}
	expect.True(t, whole.Parse(sampleRecord(16, 16, numbers(5, 2)), &r) && r.Cut && len(r.Stack) == 16,
		"a full copy: %+v", r)
	if !whole.Parse(rec(Sample, miscKernel, uint64(1), uint32(7), uint32(8), uint64(9), uint64(0), uint64(0)),
		&r) || !r.Kernel || r.Regs != nil || r.Stack != nil {
		t.Errorf("a kernel thread: %+v", r)
	}
	_, ok = r.Registers(context.ArchAMD64)
	expect.True(t, !ok, "registers of a sample without any")
}

func TestParseSampleARM64(t *testing.T) {
	var r Record
	l := Layout{Arch: context.ArchARM64, Regs: true}
	if !l.Parse(rec(Sample, 2, uint64(1), uint32(7), uint32(8), uint64(9), uint64(2), numbers(0, 33)), &r) {
		t.Fatal("not parsed")
	}
	regs, ok := r.Registers(context.ArchARM64)
	g := regs.ARM64
	expect.True(t, ok && g.X[0] == 0 && g.X[30] == 30 && g.Sp == 31 && g.PC == 32 && g.Known == 1<<31-1,
		"%+v", regs)
}

func TestParseOthers(t *testing.T) {
	var r Record
	for _, c := range []struct {
		b    []byte
		good func() bool
	}{
		{rec(Fork, 0, uint32(1), uint32(2), uint32(3), uint32(4), uint64(5)),
			func() bool { return r.PID == 1 && r.TID == 3 && r.Parent == 4 && r.Time == 5 }},
		{rec(Exit, 0, uint32(1), uint32(2), uint32(3), uint32(4), uint64(5)),
			func() bool { return r.TID == 3 && r.Time == 5 }},
		{rec(Comm, 0, uint32(1), uint32(2), []byte("kid\x00\x00\x00\x00\x00")),
			func() bool { return r.PID == 1 && r.TID == 2 && string(r.Name) == "kid" }},
		{rec(Lost, 0, uint64(1), uint64(22)), func() bool { return r.Lost == 22 }},
		{rec(Throttle, 0, uint64(1), uint64(2), uint64(3)), func() bool { return r.Time == 1 }},
	} {
		expect.True(t, whole.Parse(c.b, &r) && c.good(), "%x: %+v", c.b, r)
		expect.True(t, !whole.Parse(c.b[:12], &r), "type %d: parsed from 12 bytes", r.Type)
	}
	expect.True(t, !whole.Parse(rec(77, 0, uint64(1)), &r) && !whole.Parse(nil, &r), "parsed what is unknown")
}

// A sample that is truncated, or whose stack size exceeds the record, is refused.
func TestParseHostile(t *testing.T) {
	var r Record
	b := sampleRecord(16, 16, numbers(5, 2))
	for n := range len(b) {
		expect.True(t, !whole.Parse(b[:n], &r), "%d of %d bytes were parsed", n, len(b))
	}
	for _, size := range []uint64{17, 1 << 16, 1 << 40, 1<<64 - 1} {
		expect.True(t, !whole.Parse(sampleRecord(size, 8, numbers(5, 2)), &r),
			"a stack of %d bytes was parsed", size)
	}
	expect.True(t, whole.Parse(sampleRecord(16, 1<<63, numbers(5, 2)), &r) && len(r.Stack) == 16,
		"more used than copied: %d bytes", len(r.Stack))
}

func TestBufferWraps(t *testing.T) {
	data := make([]byte, 64)
	var head, tail uint64
	b := NewBuffer(data, &head, &tail)
	for i := range uint64(100) {
		r := rec(Lost, 0, i, i)
		for k, c := range r {
			data[(head+uint64(k))%64] = c
		}
		head += uint64(len(r))
		n := 0
		b.Read(func(got []byte) {
			n++
			expect.True(t, bytes.Equal(got, r), "record %d: %x, want %x", i, got, r)
		})
		must.True(t, n == 1 && tail == head && b.Broken() == 0,
			"record %d: %d read, head %d, tail %d", i, n, head, tail)
	}
}

func TestBufferRefusesHostileSizes(t *testing.T) {
	for name, c := range map[string]struct {
		size uint16
		head uint64
	}{"zero": {0, 24}, "less than a header": {7, 24}, "not aligned": {12, 24},
		"more than is there": {32, 24}, "head too far": {24, 72}} {
		data := make([]byte, 64)
		binary.LittleEndian.PutUint16(data[6:], c.size)
		head, tail := c.head, uint64(0)
		b := NewBuffer(data, &head, &tail)
		b.Read(func(got []byte) { t.Errorf("%s: read %x", name, got) })
		expect.True(t, tail == head && b.Broken() == 1,
			"%s: tail %d of %d, broken %d", name, tail, head, b.Broken())
	}
}

func TestParseCPUs(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-3": 4, "0-1,4,6-7\n": 5} {
		got, ok := parseCPUs(list)
		expect.True(t, ok && len(got) == want, "%q: %v", list, got)
	}
	for _, list := range []string{"", "a", "3-1", "0-99999999", "-1", "0,,1"} {
		got, ok := parseCPUs(list)
		expect.True(t, !ok, "%q: %v", list, got)
	}
}
