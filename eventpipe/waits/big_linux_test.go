package waits_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"flag"
	"io"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/testkit/nettracefile"
)

var big = flag.Int("big", 16, "megabytes of the trace that is made and read")

// denseStart is the first timestamp of a piece. Timestamps up to 2^49 have the same number of bytes in the
// trace.
const denseStart = 1 << 42

// dense repeats a piece that consists only of waits, with later timestamps each time.
type dense struct {
	piece, in []byte
	at        int // offset of the piece's first timestamp
	now       uint64
	left      int
}

func newDense(size int) *dense {
	w := nettracefile.New(nettracefile.Options{}).Metadata(
		nettracefile.Meta{ID: 1, Provider: "Microsoft-Windows-DotNETRuntime", Event: 301},
		nettracefile.Meta{ID: 2, Provider: "Microsoft-Windows-DotNETRuntime", Event: 302})
	w.Stacks(1) // a piece begins and ends after such a block, so that it needs the same padding
	d := &dense{in: bytes.Clone(w.Bytes()), left: size, now: denseStart}
	w.Reset()
	w.Raw(make([]byte, len(d.in)%4)...)
	skip := w.Len()
	var stacks [][]uint64
	for i := range uint64(500) {
		var s []uint64
		for j := range uint64(20) {
			s = append(s, 0x1000+(i*j*0x9e3779b97f4a7c15)>>44)
		}
		stacks = append(stacks, s)
	}
	w.Stacks(1, stacks...)
	events := make([]nettracefile.Event, 40000) // 20 threads start to wait, then each continues
	for i := range events {
		e := nettracefile.Event{Meta: 1, Thread: uint64(i%20 + 10), Seq: uint32(i/20 + 1),
			Time: denseStart + uint64(i)*1000, Stack: uint32(i/40*7%500 + 1), Payload: make([]byte, 11)}
		if i/20%2 == 1 {
			e.Meta, e.Stack, e.Payload = 2, 0, make([]byte, 2)
		}
		events[i] = e
	}
	w.Events(events...).Point(1e9).Stacks(1)
	d.piece = bytes.Clone(w.Bytes()[skip:])
	d.at = bytes.Index(d.piece, binary.AppendUvarint(nil, denseStart))
	return d
}

func (d *dense) Read(p []byte) (int, error) {
	if len(d.in) == 0 {
		if d.left <= 0 {
			return 0, io.EOF
		}
		binary.PutUvarint(d.piece[d.at:], d.now)
		d.in, d.left, d.now = d.piece, d.left-len(d.piece), d.now+1e8
	}
	n := copy(p, d.in)
	d.in = d.in[n:]
	return n, nil
}

// cpu is the processor time of this process.
func cpu() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// TestBig reads a trace of -big megabytes of waits, in bounded memory.
func TestBig(t *testing.T) {
	in := newDense(*big << 20)
	a, start, used := waits.New(), time.Now(), cpu()
	a.Read(bufio.NewReaderSize(in, 1<<16))
	a.Finish()
	took, used := time.Since(start), cpu()-used
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	count, _ := a.Total()
	t.Logf("%d MB in %v, %v of CPU time: %.0f MB/s of a core, %d MB of memory, %d waits", *big, took, used,
		float64(*big)/used.Seconds(), m.Sys>>20, count)
	if pairs := a.Counts.Events / 2; m.Sys > 200<<20 || count != pairs ||
		a.Backwards+a.Orphans+a.Unreliable > 0 {
		t.Errorf("%d MB of memory; %d waits of %d; %v", m.Sys>>20, count, pairs, a.Partial())
	}
}
