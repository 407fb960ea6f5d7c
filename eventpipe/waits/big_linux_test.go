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

// dense is a trace that consists only of waits. 20 threads start to wait, then each continues.
func dense(size int) io.Reader {
	events := make([]nettracefile.Event, 40000)
	for i := range events {
		e := nettracefile.Event{Meta: 1, Thread: uint64(i%20 + 10), Seq: uint32(i/20 + 1),
			Time: denseStart + uint64(i)*1000, Stack: uint32(i/40*7%500 + 1), Payload: make([]byte, 11)}
		if i/20%2 == 1 {
			e.Meta, e.Stack, e.Payload = 2, 0, make([]byte, 2)
		}
		events[i] = e
	}
	at, now := -1, uint64(denseStart) // the offset of a piece's first timestamp, and the timestamp
	return nettracefile.Repeat(size, 20, []nettracefile.Meta{
		{ID: 1, Provider: "Microsoft-Windows-DotNETRuntime", Event: 301},
		{ID: 2, Provider: "Microsoft-Windows-DotNETRuntime", Event: 302}}, events, func(piece []byte) {
		if at < 0 {
			at = bytes.Index(piece, binary.AppendUvarint(nil, denseStart))
		}
		binary.PutUvarint(piece[at:], now)
		now += 1e8
	})
}

// cpu is the CPU time of this process.
func cpu() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// TestBig reads a trace of -big megabytes of waits, in bounded memory.
func TestBig(t *testing.T) {
	in := dense(*big << 20)
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
