package fuzz

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/symbol"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// FuzzPerfRing reads any bytes as a ring of the kernel's: records stay inside it, there are no
// more than fit, and what a record holds lies inside the record.
func FuzzPerfRing(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x18\x00aaaaaaaabbbbbbbb"), uint64(24), uint64(0))
	f.Add([]byte("\x09\x00\x00\x00\x02\x00\x20\x00aaaaaaaabbbbbbbbcccccccc"), uint64(72), uint64(40))
	f.Fuzz(func(t *testing.T, b []byte, head, tail uint64) {
		data := make([]byte, 4096)
		copy(data, b)
		head, tail = head&^7, tail&^7
		ring := perfevent.NewBuffer(data, &head, &tail)
		n := 0
		ring.Read(func(record []byte) {
			if n++; n > len(data)/8 {
				t.Fatalf("%d records in %d bytes", n, len(data))
			}
			for _, arch := range context.Arches {
				var r perfevent.Record
				l := perfevent.Layout{Arch: arch, Regs: true, Stack: true}
				if l.Parse(record, &r) && len(r.Regs)+len(r.Stack) > len(record) {
					t.Fatalf("%d bytes of a record of %d", len(r.Regs)+len(r.Stack), len(record))
				}
				r.Registers(arch)
			}
		})
		must.True(t, head == tail, "%d bytes were left", head-tail)
	})
}

// A perf map is a text of another process and may hold anything.
func FuzzPerfMap(f *testing.F) {
	for _, s := range []string{"", "1000 100 JS:*hot /a b.js:1\n", "0x10 0x20 a\n18 8 b\n",
		"ffffffffffffffff ff x\n", " \n\n1 1", "10 ffffffffffffffef all\n0 1 zero\n"} {
		f.Add([]byte(s), uint64(0x1008))
	}
	f.Fuzz(func(t *testing.T, b []byte, addr uint64) {
		if name, ok := symbol.ParsePerfMap(b).Find(addr); ok && (name == "" || len(name) > len(b)) {
			t.Errorf("%q", name)
		}
	})
}
