package startup

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// A process is sampled from its start. Only the engine of that process gets the samples, once.
func TestStarting(t *testing.T) {
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	must.Do(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var s Starting
	s.Begin(cmd.Process.Pid)
	pid := cmd.Process.Pid
	expect.True(t, s.Began(pid) && s.Began(pid+1), "a process of the command has no start")
	expect.True(t, !s.Began(pid) && !s.Began(pid+1), "a process starts twice")
	idle := new(Starting)
	expect.True(t, !idle.Began(1) && !(*Starting)(nil).Began(1), "a process starts without a command")
	if s.s.Load() == nil {
		t.Skip("SKIPPED-CHECK: the kernel permits no perf events")
	}
	expect.True(t, s.Take(cmd.Process.Pid+1) == nil, "another process gets the samples")
	got := s.Take(cmd.Process.Pid)
	must.True(t, got != nil && s.Take(cmd.Process.Pid) == nil, "the samples are not taken once")
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
	got.End()
	expect.True(t, hits != 0, "no sample of a busy process")
	s.End()
	var none *Starting
	expect.True(t, none.Take(1) == nil, "samples of nothing")
}

// The samples of a start are bounded.
func TestStartupRoom(t *testing.T) {
	s := &Sampler{}
	stack := bytes.Repeat([]byte{1}, 1<<20)
	for range 100 {
		s.keep(&perfevent.Record{Stack: stack})
	}
	expect.True(t, s.full && s.bytes <= maxBytes && len(s.hits) == maxBytes>>20,
		"%d samples, %d bytes", len(s.hits), s.bytes)
}

// The shortest program is sampled from its first instruction: the kernel counts all of its time.
func TestStartStopped(t *testing.T) {
	for range 20 {
		var s Starting
		cmd := exec.Command("true")
		must.Do(t, s.Start(cmd))
		err := cmd.Wait()
		got := s.Take(cmd.Process.Pid)
		if got == nil && err == nil && cmd.SysProcAttr != nil {
			t.Skip("SKIPPED-CHECK: the kernel permits no perf events")
		}
		must.True(t, err == nil && got != nil, "%v, sampled %v", err, got != nil)
		got.HandOver(func(*perfevent.Record) {})
		got.Rings.Read(func(*perfevent.Record) {})
		n, ok := got.Rings.Remove(uint32(cmd.Process.Pid))
		got.End()
		expect.True(t, ok && n.Counted != 0, "%d ns of the program are counted, %v", n.Counted, ok)
	}
}

// A program whose rights tracing would take away is not traced.
func TestTraceable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "program")
	for mode, want := range map[os.FileMode]bool{0o755: true, 0o755 | os.ModeSetuid: false,
		0o755 | os.ModeSetgid: false} {
		must.Do(t, errors.Join(os.WriteFile(file, nil, 0o755), os.Chmod(file, mode)))
		expect.Equal(t, traceable(file), want, mode)
	}
	expect.True(t, !traceable(file+"-absent"), "an absent file")
}
