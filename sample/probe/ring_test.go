package probe

import (
	"bytes"
	"slices"
	"testing"
	"unsafe"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// bed is a ring without a probe.
type bed struct {
	reader
	mem []uint64
}

func newBed(tail uint64) *bed {
	b := &bed{mem: make([]uint64, RingSize/8)}
	b.form = formats[context.ArchAMD64]
	b.h, b.done, b.tail, b.freed = &header{head: tail, tail: tail}, map[uint64]uint64{}, tail, tail
	b.ring = unsafe.Slice((*byte)(unsafe.Pointer(&b.mem[0])), RingSize)
	return b
}

// claim does the same as the probe's claim, and put the same as its commit.
func (b *bed) claim(size uint64) uint64 {
	at := b.h.head
	b.h.head += size
	r := b.at(at)
	r.claim, r.size = at|2, uint32(size) // commit stays what it was
	return at
}

func (b *bed) at(at uint64) *record { return (*record)(unsafe.Pointer(&b.ring[at%RingSize])) }

func (b *bed) put(at uint64, tid uint32, stack []byte) {
	r := b.at(at)
	r.tid, r.stackSize = tid, uint32(len(stack))
	for i, c := range stack {
		b.ring[(at+b.body()+uint64(i))%RingSize] = c
	}
	r.commit = at | 1
}

// reg writes a register of a record.
func (b *bed) reg(at uint64, i int, v uint64) {
	for k := range 8 {
		b.ring[(at+recordHead+8*uint64(i)+uint64(k))%RingSize] = byte(v >> (8 * k))
	}
}

// body returns the offset of a record's stack.
func (b *bed) body() uint64 { return b.form.record() + uint64(b.form.extra) }

func (b *bed) tids() (out []uint32) {
	b.read(func(r *Record) { out = append(out, r.TID) })
	return out
}

const some = 768

func TestRing(t *testing.T) {
	for _, c := range []struct {
		name string
		tail uint64
	}{{"begin", 0}, {"end", RingSize - some}, {"laps later", 7*RingSize - 2*some}} {
		for arch, form := range formats {
			b := newBed(c.tail)
			b.form = form
			want := []byte("the stack that was copied")
			var got []byte
			var last uint64
			at := b.claim(some)
			b.reg(at, form.regs-1, 0x5eed)
			b.put(at, 1, want)
			b.put(b.claim(some), 2, nil)
			b.read(func(r *Record) {
				if r.TID == 1 {
					got, last = bytes.Clone(r.Stack), r.Regs[form.regs-1]
				}
			})
			expect.True(t, bytes.Equal(got, want) && last == 0x5eed && b.h.tail == c.tail+2*some &&
				len(b.done) == 0, "%v, %s: %q, last register %#x, tail %d", arch, c.name, got, last, b.h.tail)
		}
	}
}

// An interrupted writer delays no other, and its room is not reused.
func TestRingPassesBy(t *testing.T) {
	b := newBed(0)
	first, second := b.claim(some), b.claim(some)
	b.put(second, 2, nil)
	got := b.tids()
	must.True(t, slices.Equal(got, []uint32{2}) && b.h.tail == 0, "%v, tail %d", got, b.h.tail)
	third := b.claim(some)
	b.put(third, 3, nil)
	got = b.tids()
	must.True(t, slices.Equal(got, []uint32{3}) && b.h.tail == 0, "%v, tail %d: each once", got, b.h.tail)
	b.put(first, 1, nil)
	got = b.tids()
	must.True(t, slices.Equal(got, []uint32{1}) && b.h.tail == 3*some, "%v, tail %d", got, b.h.tail)
}

// While a long batch is read, its first records are freed, so that the threads have room for copies.
func TestRingFreesEarly(t *testing.T) {
	const size = RingSize / 64
	b := newBed(0)
	for range 64 {
		b.put(b.claim(size), 1, nil)
	}
	most, n := uint64(0), uint64(0)
	b.read(func(*Record) {
		most = max(most, n*size-b.h.tail)
		n++
	})
	expect.True(t, n == 64 && most <= RingSize/8 && b.h.tail == RingSize,
		"%d records, tail %d; at most %d bytes were read and not free", n, b.h.tail, most)
}

// Bytes from earlier laps of the ring are not a record.
func TestRingStale(t *testing.T) {
	b := newBed(0)
	b.put(b.claim(some), 1, nil)
	b.tids()
	b.h.head += RingSize // a lap later: claimed, nothing written
	b.tail, b.h.tail = RingSize, RingSize
	b.h.head = RingSize + some
	got := b.tids()
	expect.True(t, len(got) == 0, "%v", got)
}

// The target may write any bytes.
func TestRingHostile(t *testing.T) {
	for name, harm := range map[string]func(*bed, *record){
		"size 0":           func(_ *bed, r *record) { r.size = 0 },
		"size too large":   func(_ *bed, r *record) { r.size = RingSize },
		"size no multiple": func(_ *bed, r *record) { r.size = some + 8 },
		"stack beyond":     func(_ *bed, r *record) { r.stackSize = some },
		"stack wraps":      func(_ *bed, r *record) { r.stackSize = ^uint32(0) },
		"payload beyond":   func(_ *bed, r *record) { r.payloadSize = MaxPayload + 1 },
		"payload too large": func(b *bed, r *record) {
			r.size, r.payloadSize, b.h.head = 4*some, MaxPayload+1, 4*some
		},
		"payload in the stack": func(_ *bed, r *record) { r.payloadSize = some - 408 },
		"extra beyond": func(_ *bed,
			r *record) {
			r.extraSize = uint32(formats[context.ArchAMD64].extra) + 1
		},
		"head far ahead":        func(b *bed, _ *record) { b.h.head = 1 << 60 },
		"head before the tail":  func(b *bed, _ *record) { b.tail = some; b.h.head = 0 },
		"commit of another lap": func(_ *bed, r *record) { r.commit += RingSize },
	} {
		b := newBed(0)
		at := b.claim(some)
		b.put(at, 1, nil)
		harm(b, b.at(at))
		got := b.tids()
		expect.True(t, len(got) == 0, "%s: %v", name, got)
	}
}

// A record that is not committed keeps its room. It is read after its commit, even if another was read first.
func TestRingKeepsRoom(t *testing.T) {
	b := newBed(0)
	for tid, at := range []uint64{b.claim(some), b.claim(some)} {
		expect.Equal(t, len(b.tids()), 0, "records before the next commit")
		b.put(at, uint32(tid), nil)
		expect.Slices(t, b.tids(), []uint32{uint32(tid)}, "records behind it")
	}
}

// The probe gets no room back that is still to be read.
func TestRingRoom(t *testing.T) {
	b := newBed(0)
	b.put(b.claim(some), 1, nil)
	b.put(b.claim(some), 2, nil)
	n := 0
	b.step = func(what string) {
		if what == "copy" {
			expect.True(t, b.h.tail <= uint64(n)*some, "%d records read, the tail is at %d", n, b.h.tail)
			n++
		}
	}
	expect.Slices(t, b.tids(), []uint32{1, 2}, "records")
	expect.Equal(t, n, 2, "copies")
}

// The part below an alternate stack follows the stack, aligned to eight bytes.
func TestBelow(t *testing.T) {
	for _, c := range []struct {
		name  string
		stack string
		size  uint64 // as in the record
		want  string
		bad   uint64
	}{
		{"none", "alternate", 0, "", 0},
		{"there", "alternate", 8, "its own.", 0},
		{"fills the record", "alternate", some - newBed(0).body() - 16, "its own.", 0},
		{"beyond the record", "alternate", some, "", 1},
		{"wraps", "alternate", ^uint64(0) - 7, "", 1},
	} {
		b := newBed(RingSize - some)
		at := b.claim(some)
		r := b.at(at)
		r.below, r.belowSize = 0x7000, c.size
		copy(b.ring[(at+b.body()+16)%RingSize:], "its own.")
		b.put(at, 1, []byte(c.stack))
		got := ""
		b.read(func(r *Record) {
			got = string(bytes.TrimRight(r.Below, "\x00"))
			expect.True(t, string(r.Stack) == c.stack && r.BelowAddr == 0x7000,
				"%s: %q at %#x", c.name, r.Stack, r.BelowAddr)
		})
		expect.True(t, got == c.want && b.Bad == c.bad, "%s: %q, %d bad records", c.name, got, b.Bad)
	}
}

// A ring that was used before has old records. At positions that go on, none of them is taken for a new one.
func TestRingUsedBefore(t *testing.T) {
	b := newBed(0)
	b.put(b.claim(some), 1, nil)
	b.put(b.claim(some), 1, nil)
	b.tids()
	next := &bed{mem: b.mem}
	next.form, next.ring, next.done = b.form, b.ring, map[uint64]uint64{}
	next.h = &header{head: b.h.head, tail: b.h.head}
	next.tail, next.freed = b.h.head, b.h.head
	at := next.claim(some)
	next.h.head += some // claimed, and nothing written
	got := next.tids()
	expect.True(t, len(got) == 0, "copies of threads %v of the session before", got)
	next.h.head -= some
	next.put(at, 2, nil)
	got = next.tids()
	expect.True(t, slices.Equal(got, []uint32{2}), "copies of threads %v, want 2", got)
}
