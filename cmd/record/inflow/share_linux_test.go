package inflow

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/internal/procstat"
	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// shared returns a process whose samples other recordings may get.
func shared(t *testing.T) (*Process, Sharer) {
	t.Helper()
	p := New(os.Getpid(), "test")
	p.Shared = Share(p)
	must.True(t, p.Shared != nil, "not shared")
	t.Cleanup(p.EndSharing)
	return p, p.Shared
}

func (p *Process) says(m wire.Message) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.passOn(m)
	p.Receive(m)
}

func cpuSample(at time.Time) *wire.Sample {
	return &wire.Sample{TID: 1, TimeUnixNano: at.UnixNano(), CPUNanos: 1, WallNanos: 1 << 50,
		Frames: []wire.Frame{{Module: 1, IP: 0x1234}}}
}

// waitJoined waits until n recordings have joined.
func waitJoined(t *testing.T, s Sharer, n int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		in := s.(*sharing)
		in.mu.Lock()
		got := len(in.joined)
		in.mu.Unlock()
		if got == n {
			return
		}
	}
	t.Fatalf("%d recordings have not joined", n)
}

// A recording that joins gets the known modules, methods, and threads, the samples of its time, and a
// farewell.
func TestShare(t *testing.T) {
	p, s := shared(t)
	before := time.Now()
	p.says(&wire.Hello{PID: 7, Arch: "amd64"})
	p.says(&wire.Module{ID: 1, Start: 0x1000, End: 0x2000, Path: "/lib/a.so"})
	p.says(&wire.Method{ID: 2, Name: "A.B"})
	p.says(&wire.Line{Addr: 0x1234, File: "a.cs", Line: 5})
	p.says(&wire.Thread{TID: 1, Name: "main"})
	p.says(&wire.GapName{Code: 3, Name: "odd"})
	p.says(cpuSample(before))
	c, tool, _ := Join(os.Getpid(), Request{CPU: true})
	must.True(t, c != nil && tool == os.Getpid(), "not joined: %v, tool %d", c, tool)
	waitJoined(t, s, 1)
	other := New(7, "other")
	p.says(cpuSample(before)) // held for long
	p.says(cpuSample(time.Now()))
	p.says(&wire.Sample{TID: 1, TimeUnixNano: time.Now().UnixNano(), WallNanos: 5}) // not wanted
	c.CloseWrite()
	other.Read(c)
	mine, its := wire.NewWriter(nil), wire.NewWriter(nil)
	p.Tables(mine)
	other.Tables(its)
	expect.True(t, bytes.Equal(mine.Bytes(), its.Bytes()) && its.Len() != 0 && other.Counts().Samples == 1 &&
		!other.Troubled(), "%q, want %q; %+v", its.Bytes(), mine.Bytes(), other.Counts())
	got := collect.Build(&collect.Info{}, []*collect.Process{other.Process}, nil)
	expect.True(t, got.Stacks[0].WallNanos <= int64(time.Since(before)),
		"waiting time before the recording is in it: %+v", got.Stacks)
	if c := got.Stats.Counters; got.Stats.CPU == nil || c["shared"] != 1 || c["timed"] != 1 {
		t.Errorf("CPU time %v, counters %v", got.Stats.CPU, c)
	}
	waitLeft(t, p, s)
}

// If the system's clock is set during a recording, the times of its samples do not change. A recording that
// joins later uses the new clock, also for the samples that it gets.
func TestShareSetClock(t *testing.T) {
	for _, set := range []time.Duration{-time.Hour, time.Hour} {
		p := New(os.Getpid(), "test")
		before := time.Now()
		p.began -= int64(set)
		p.Shared = Share(p)
		p.says(&wire.Hello{PID: 7, Arch: "amd64", StartUnixNano: before.Add(-set).UnixNano()})
		c, _, _ := Join(os.Getpid(), Request{CPU: true})
		waitJoined(t, p.Shared, 1)
		other := New(7, "other")
		other.From = before.UnixNano()
		p.says(cpuSample(before.Add(-set))) // from before the recording
		at := time.Now().Add(-set)
		p.says(cpuSample(at))
		c.CloseWrite()
		other.Read(c)
		got := collect.Build(&collect.Info{}, []*collect.Process{other.Process}, nil)
		expect.Equal(t, other.Counts().Samples, 1, "samples after the clock was set by %v", set)
		expect.True(t, time.Unix(0, other.First()).Sub(at.Add(set)).Abs() < time.Second &&
			got.Start.Sub(before).Abs() < time.Minute, "set by %v: from %v, sample at %v, now %v",
			set, got.Start, time.Unix(0, other.First()), before)
		p.EndSharing()
	}
}

// waitLeft waits until all recordings that joined have left. They are removed when a message is sent.
func waitLeft(t *testing.T, p *Process, s Sharer) {
	t.Helper()
	in := s.(*sharing)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		p.says(cpuSample(time.Now()))
		in.mu.Lock()
		left := len(in.joined) == 0
		in.mu.Unlock()
		if left {
			return
		}
	}
	t.Fatal("a recording has not left")
}

// Messages that a joined recording does not get do not wake its writer. The agent's recordings write at the
// same moments.
func TestJoinedSleeps(t *testing.T) {
	now := time.Now()
	j := &joined{q: Request{CPU: true}, own: true, since: now.UnixNano(), w: wire.NewWriter(nil),
		wake: make(chan struct{}, 1), times: newTimes(os.Getpid(), &clocks{})}
	for range 100 {
		j.take(&wire.Stats{Key: "a", Value: 1})
		j.take(&wire.Usage{TID: wire.ProcessTID, CPUNanos: 5})
		j.take(&wire.Sample{TID: 1, TimeUnixNano: now.UnixNano(), WallNanos: 5}) // not wanted
	}
	expect.Equal(t, len(j.wake), 0, "wake-ups without a message")
	expect.Equal(t, j.times.ran, 5, "CPU time of the process")
	j.take(cpuSample(now))
	expect.Equal(t, len(j.wake), 1, "wake-ups for a sample")
	early, late := time.Unix(100, 1), time.Unix(100, int64(shareOwn)-1)
	expect.Equal(t, early.Add(j.pause(early)), late.Add(j.pause(late)), "moments of writes")
	j.own = false
	expect.Equal(t, j.pause(early), shareEvery, "pause of another tool's")
}

type perfMaps struct {
	collect.Namer
	searched int
}

func (p *perfMaps) Keep(string, string, *elf.File) {}
func (p *perfMaps) KeepPerfMap(int) bool           { p.searched++; return false }

// A process that reports many modules at once is searched for its perf map a few times only.
func TestKeeperSearches(t *testing.T) {
	var n perfMaps
	keep, began := Keeper(&n, os.Getpid()), time.Now()
	for range 1000 {
		keep(&wire.Module{Path: "[vdso]"})
	}
	most := 1 + int(time.Since(began)/mapEvery)
	expect.True(t, n.searched >= 1 && n.searched <= most, "%d searches, want 1 to %d", n.searched, most)
}

// A recording that does not read neither blocks the first one nor fills its memory.
func TestShareSlowReader(t *testing.T) {
	p, s := shared(t)
	c, _, _ := Join(os.Getpid(), Request{CPU: true, Wall: true})
	waitJoined(t, s, 1)
	defer c.Close()
	in := s.(*sharing)
	in.mu.Lock()
	j := in.joined[0]
	in.mu.Unlock()
	m := cpuSample(time.Now())
	m.Frames = make([]wire.Frame, 500)
	most := 0
	for dropped := uint64(0); dropped < 1000; {
		m.TimeUnixNano = time.Now().UnixNano()
		p.says(m)
		j.mu.Lock()
		most, dropped = max(most, len(j.buf)+j.w.Len()), j.dropped
		j.mu.Unlock()
	}
	expect.True(t, most <= maxUnsent+1<<20, "%d bytes", most)
}

// Malformed requests are not answered. A connection that is cut ends only its own sharing.
func TestShareGarbage(t *testing.T) {
	p, s := shared(t)
	for _, request := range []string{"", "x",
		"swjoin0\n\x01\x00\x00\x00\x00\x00\x00\x00", "GET / HTTP/1.1\r\n"} {
		c := must.Get(net.DialUnix("unix", nil, shareAddress(os.Getpid())))(t)
		c.Write([]byte(request))
		c.CloseWrite()
		c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if b, err := io.ReadAll(c); len(b) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q is answered with %q, %v", request, b, err)
		}
		c.Close()
	}
	c, _, _ := Join(os.Getpid(), Request{CPU: true})
	waitJoined(t, s, 1)
	c.Close()
	waitLeft(t, p, s)
	for range maxJoined {
		c, _, _ := Join(os.Getpid(), Request{})
		must.True(t, c != nil, "not joined")
	}
	waitJoined(t, s, maxJoined)
	c, _, _ = Join(os.Getpid(), Request{})
	expect.True(t, c == nil, "more recordings than the bound")
}

// When the first recording ends, those that joined are notified.
func TestShareEnds(t *testing.T) {
	p, s := shared(t)
	c, _, _ := Join(os.Getpid(), Request{CPU: true})
	waitJoined(t, s, 1)
	p.EndSharing()
	other := New(7, "other")
	other.Read(c)
	expect.True(t, !other.Troubled(), "the stream of an ended recording has no farewell")
	c, _, _ = Join(os.Getpid(), Request{})
	expect.True(t, c == nil, "a recording joins one that has ended")
}

// burn uses CPU time.
func burn(d time.Duration) {
	begin, _ := procstat.CPUTime(os.Getpid())
	for now := begin; now-begin < int64(d); now, _ = procstat.CPUTime(os.Getpid()) {
	}
}

// A recording of a part of the time joins before that part. It gets the samples that begin in its part,
// and the CPU time of the part. The recording that samples keeps no samples.
func TestSharePart(t *testing.T) {
	p, s := shared(t)
	p.Relay = true
	p.says(&wire.Hello{PID: 7, Arch: "amd64", StartUnixNano: 5})
	begin := time.Now().Add(time.Hour)
	from, until := begin.UnixNano(), begin.Add(50*time.Millisecond)
	c, _, _ := Join(os.Getpid(), Request{CPU: true, Wall: true, From: begin, Until: until})
	waitJoined(t, s, 1)
	j := s.(*sharing).joined[0]
	burn(60 * time.Millisecond) // which does not count
	j.beginTimes()
	burn(30 * time.Millisecond)
	j.endTimes()
	burn(60 * time.Millisecond)
	late := until.Add(20 * time.Millisecond)
	p.says(cpuSample(begin.Add(-time.Nanosecond)))
	p.says(cpuSample(begin))
	p.says(cpuSample(until)) // of the next part
	p.says(cpuSample(late))
	p.says(&wire.Sample{TID: 2, TimeUnixNano: late.UnixNano(), WallNanos: uint64(60 * time.Millisecond),
		Frames: []wire.Frame{{Module: 1, IP: 0x1234}}})
	p.says(&wire.Sample{TID: 2, TimeUnixNano: late.UnixNano(), WallNanos: uint64(10 * time.Millisecond)})
	c.CloseWrite()
	other := New(7, "other")
	other.From = from
	other.StopAt(until.UnixNano())
	other.Read(c)
	got := collect.Build(&collect.Info{}, []*collect.Process{other.Process}, nil)
	if n := other.Counts().Samples; n != 2 || p.Counts().Samples != 0 || got.Start.UnixNano() != from ||
		got.Stats.Counters["timed"] != 1 {
		t.Errorf("%d samples, %d where they are taken, from %v, %v", n, p.Counts().Samples,
			got.Start, got.Stats.Counters)
	}
	cpu := time.Duration(got.Stats.CPU.Process)
	expect.True(t, cpu >= 30*time.Millisecond && cpu <= 80*time.Millisecond, "CPU time %v, of 30 ms", cpu)
	for _, st := range got.Stacks {
		if st.CPUNanos == 0 && st.WallNanos > int64(41*time.Millisecond) {
			t.Errorf("waiting time %v goes beyond the part", time.Duration(st.WallNanos))
		}
	}
}

// Once the process has ended, it has no clock. A recording of its last part gets the CPU time of that
// part from the recording that samples. Without that time, its samples keep their weights.
func TestSharedProcessEnds(t *testing.T) {
	const ms = uint64(time.Millisecond)
	defer func(d time.Duration) { endLimit = d }(endLimit)
	endLimit = time.Hour
	for name, c := range map[string]struct {
		reported, late bool // the last times are reported; the part begins after the process's end
		want           uint64
	}{
		"reported": {true, false, 40 * ms}, "not reported": {false, false, 0},
		"ended before": {true, true, 0},
	} {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		must.Do(t, cmd.Start())
		pid := cmd.Process.Pid
		p := New(pid, "test")
		p.Shared = Share(p)
		conn, _, err := Join(pid, Request{CPU: true})
		must.Do(t, err)
		waitJoined(t, p.Shared, 1)
		in := p.Shared.(*sharing)
		j := in.joined[0]
		for len(j.times.before.threads) == 0 || j.times.before.process == 0 {
			j.beginTimes()
		}
		p.says(&wire.Hello{PID: uint64(pid), Arch: "amd64"})
		p.says(&wire.Sample{TID: uint64(pid), TimeUnixNano: time.Now().UnixNano(), CPUNanos: 7 * ms,
			Frames: []wire.Frame{{Module: 1, IP: 0x1234}}})
		cmd.Process.Kill()
		cmd.Wait()
		if c.late {
			j.beginTimes()
		}
		j.endTimes()
		if c.reported {
			of := func(now, at uint64) uint64 { return now + 40*ms - at }
			b, tid := &j.times.before, uint64(pid)
			p.says(&wire.Usage{TID: tid, CPUNanos: of(b.threads[tid], in.first.threads[tid])})
			p.says(&wire.Usage{TID: wire.ProcessTID, CPUNanos: of(b.process, in.first.process)})
		}
		other := New(pid, "other")
		read := make(chan struct{})
		go func() { other.Read(conn); close(read) }()
		if p.EndSharing(); !closedNow(j.done) {
			t.Errorf("%s: the recording that samples does not wait until the rest is sent", name)
		}
		<-read
		got := collect.Build(&collect.Info{}, []*collect.Process{other.Process}, nil)
		var process, profile uint64
		if got.Stats.CPU != nil {
			process = uint64(got.Stats.CPU.Process)
		}
		for _, s := range got.Stacks {
			profile += uint64(s.CPUNanos)
		}
		expect.True(t, !other.Troubled() && process == c.want && profile == max(c.want, 7*ms),
			"%s: process %d, profile %d ns, of %d", name, process, profile, c.want)
	}
}

func closedNow(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A recording that ends before its part begins has no CPU time. Between recordings of one tool,
// there is no time limit.
func TestShareBeforePart(t *testing.T) {
	defer func(d time.Duration) { joinLimit = d }(joinLimit)
	joinLimit = -time.Second
	p, s := shared(t)
	p.says(&wire.Hello{PID: 7, Arch: "amd64"})
	from := time.Now().Add(time.Hour)
	c, _, err := Join(os.Getpid(), Request{CPU: true, From: from, Until: from.Add(time.Hour)})
	must.Do(t, err)
	waitJoined(t, s, 1)
	burn(20 * time.Millisecond)
	c.CloseWrite()
	other := New(7, "other")
	other.Read(c)
	if got := collect.Build(&collect.Info{}, []*collect.Process{other.Process}, nil); other.Troubled() ||
		got.Stats.CPU != nil && got.Stats.CPU.Process != 0 {
		t.Errorf("troubled %v, %+v", other.Troubled(), got.Stats.CPU)
	}
}

// The error shows why a recording cannot be joined.
func TestShareRefuses(t *testing.T) {
	_, _, err := Join(os.Getpid(), Request{})
	expect.True(t, err == ErrNoRecording, "a process that is not recorded: %v", err)
	_, s := shared(t)
	s.(*sharing).mu.Lock()
	s.(*sharing).closed = true
	s.(*sharing).mu.Unlock()
	_, _, err = Join(os.Getpid(), Request{})
	expect.True(t, err != nil && err != ErrNoRecording, "one that ends: %v", err)
}

// One recording at a time may load the probe into a process.
func TestClaim(t *testing.T) {
	release, first := Claim(os.Getpid())
	_, second := Claim(os.Getpid())
	other, ofOther := Claim(os.Getpid() + 1<<22)
	release()
	again, third := Claim(os.Getpid())
	other()
	again()
	expect.True(t, first && !second && ofOther && third,
		"first %v, second %v, of another process %v, after the first %v", first, second, ofOther, third)
}
