package trace

import (
	"bufio"
	"bytes"
	"flag"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/nettracefile"
)

var big = flag.Int("big", 16, "megabytes of the trace that is made and read")

// dense repeats a piece of samples and allocations.
type dense struct {
	head, piece []byte
	left        int
	in          []byte
}

func newDense(size int) *dense {
	w := nettracefile.New(nettracefile.Options{}).Metadata(metas...)
	w.Stacks(1) // a piece begins and ends behind such a block, so that it needs the same padding
	d := &dense{head: bytes.Clone(w.Bytes()), left: size}
	w.Reset()
	w.Raw(make([]byte, len(d.head)%4)...)
	skip := w.Len()
	var stacks [][]uint64
	for i := range uint64(500) {
		var s []uint64
		for j := range uint64(30) {
			s = append(s, 0x1000+(i*j*0x9e3779b97f4a7c15)>>44)
		}
		stacks = append(stacks, s)
	}
	w.Stacks(1, stacks...)
	events := make([]nettracefile.Event, 20000)
	for i := range events {
		e := nettracefile.Event{Meta: metaSample, Seq: uint32(i + 1), Capture: 9, Thread: uint64(i%20 + 10), Time: uint64(i/20) * 1e6, Stack: uint32(i*7%500 + 1), Payload: payload(8, uint32(1+i%2))}
		if i%8 == 7 {
			e.Meta, e.Payload = metaTick, payload(8, uint32(1), uint32(0), uint16(1), uint64(102400), uintptr(1), "System.Collections.Generic.Node", uint32(0), uintptr(2), uint64(24))
		}
		events[i] = e
	}
	w.Events(events...).Point(1e9).Stacks(1)
	d.piece = bytes.Clone(w.Bytes()[skip:])
	d.in = d.head
	return d
}

func (d *dense) Read(p []byte) (int, error) {
	if len(d.in) == 0 {
		if d.left <= 0 {
			return 0, io.EOF
		}
		d.in, d.left = d.piece, d.left-len(d.piece)
	}
	n := copy(p, d.in)
	d.in = d.in[n:]
	return n, nil
}

// TestBig reads a trace of -big megabytes in bounded memory.
func TestBig(t *testing.T) {
	tr, start := New(), time.Now()
	tr.Read(bufio.NewReaderSize(newDense(*big<<20), 1<<16))
	took := time.Since(start)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	p := tr.Profile()
	t.Logf("%d MB in %v: %.0f MB/s, %d MB of memory, %d samples, %d stacks; %d notes", *big, took, float64(*big)/took.Seconds(), m.Sys>>20, p.Stats.Samples, len(p.Stacks), len(p.Stats.Notes))
	if m.Sys > 200<<20 || p.Stats.Samples == 0 {
		t.Errorf("%d MB of memory", m.Sys>>20)
	}
}
