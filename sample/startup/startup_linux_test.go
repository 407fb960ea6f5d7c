package startup

import (
	"bytes"
	"os/exec"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/sample/perfevent"
)

// A process is sampled from its start. Only the engine of that process gets the samples, once.
func TestStarting(t *testing.T) {
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var s Starting
	s.Begin(cmd.Process.Pid)
	if s.s.Load() == nil {
		t.Skip("SKIPPED-CHECK: the kernel permits no perf events")
	}
	if s.Take(cmd.Process.Pid+1) != nil {
		t.Error("another process gets the samples")
	}
	got := s.Take(cmd.Process.Pid)
	if got == nil || s.Take(cmd.Process.Pid) != nil {
		t.Fatal("the samples are not taken once")
	}
	hits := 0
	for end := time.Now().Add(20 * time.Second); hits == 0 && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
		got.HandOver(func(r *perfevent.Record) {
			if int(r.TID) == cmd.Process.Pid && len(r.Stack) > 0 {
				hits++
			}
		})
		got.Rings.Read(func(*perfevent.Record) { hits++ })
	}
	if got.End(); hits == 0 {
		t.Error("no sample of a busy process")
	}
	s.End()
	var none *Starting
	if none.Take(1) != nil {
		t.Error("samples of nothing")
	}
}

// The samples of a start are bounded.
func TestStartupRoom(t *testing.T) {
	s := &Sampler{}
	stack := bytes.Repeat([]byte{1}, 1<<20)
	for range 100 {
		s.keep(&perfevent.Record{Stack: stack})
	}
	if !s.full || s.bytes > maxBytes || len(s.hits) != maxBytes>>20 {
		t.Errorf("%d samples, %d bytes", len(s.hits), s.bytes)
	}
}
