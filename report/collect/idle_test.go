package collect

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// A process without samples has a line with the reason, preferably from its clocks.
func TestIdle(t *testing.T) {
	for _, c := range []struct {
		name     string
		counters map[string]uint64
		usages   []*wire.Usage
		farewell string
		want     string
	}{
		{"a library", nil, nil, "", ""},
		{"the process ended", map[string]uint64{"probe_rounds": 0}, nil, "the process ended.", ""},
		{"no thread ran", map[string]uint64{"probe_rounds": 9}, nil, "stopped", "polled 9 times"},
		{"not permitted", map[string]uint64{"probe_rounds": 9, "probe_visits": 3, "probe_hidden": 3}, nil,
			"stopped", "does not permit"},
		{"nothing ran", map[string]uint64{"probe_rounds": 9, "probe_visits": 3}, nil,
			"stopped", "polled 9 times"},
		{"nearly no time", nil, []*wire.Usage{usageOf(1, 3, 0, 0), usageOf(0, 3, 0, 0)}, "the process ended.",
			"process 7 (app) used 3ms of CPU time while it was recorded, less than the 10ms between two samples"},
		{"time by cause", nil, []*wire.Usage{usageOf(1, 1200, 0, wire.CauseStartup), usageOf(2, 7, 0, 0),
			usageOf(0, 1210, 0, 0)}, "the process ended.",
			"process 7 (app) used 1.21s of CPU time, and none of it was sampled: short threads 10ms, start-up 1.2s"},
	} {
		p := NewProcess(7, "app")
		p.hello = &wire.Hello{RateMilliHz: 100_000}
		for _, u := range c.usages {
			p.Take(u)
		}
		p.farewell = c.farewell
		for k, v := range c.counters {
			p.counters[k] = v
		}
		got := p.idle()
		expect.True(t, (got == "") == (c.want == "") && strings.Contains(got, c.want) &&
			!strings.Contains(got, "\n"), "%s: %q", c.name, got)
	}
}

// The most certain cause is the one reported.
func TestWhyEmpty(t *testing.T) {
	used := usageOf(0, 3, 0, 0)
	for _, c := range []struct {
		name    string
		prepare func(p *Process)
		want    string
	}{
		{"nothing known", func(p *Process) {}, ""},
		{"a note", func(p *Process) { p.notes = []string{"no threads"} }, "no threads"},
		{"a note of something else",
			func(p *Process) { p.notes, p.clock = []string{"the probe reads the memory"}, used },
			"process 7 (app) used 3ms"},
		{"cut off", func(p *Process) {
			p.notes, p.clock, p.ended = []string{"no threads"}, used,
				io.ErrUnexpectedEOF
		}, "process 7 (app) was cut off"},
	} {
		p := NewProcess(7, "app")
		p.hello = &wire.Hello{RateMilliHz: 100_000}
		c.prepare(p)
		if got := p.WhyEmpty(); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Frames are written NAME:CLASS's first letter, leaf first.
func stackOf(p *export.Profile, index map[string]int32, text string) {
	s := export.Stack{Count: 1}
	for f := range strings.FieldsSeq(text) {
		if _, ok := index[f]; !ok {
			name, class, _ := strings.Cut(f, ":")
			if rest, ok := strings.CutPrefix(name, "SIG"); ok {
				name = signalMark + rest
			}
			index[f] = int32(len(p.Frames))
			p.Frames = append(p.Frames,
				export.Frame{Name: name, ModuleIndex: -1,
					Class: map[string]export.Class{"m": export.ClassManaged, "n": export.ClassNative,
						"r": export.ClassRuntime, "g": export.ClassGap, "k": export.ClassKernel}[class]})
		}
		s.Frames = append(s.Frames, index[f])
	}
	p.Stacks = append(p.Stacks, s)
}

func TestHold(t *testing.T) {
	b := newBuilder(nil)
	index := map[string]int32{}
	cases := []struct{ in, want string }{
		{"__futex_abstimed_wait_common:n pthread_cond_wait:n clr+0x10:r clr+0x20:r SIGlibc+0x3c04f:n App.Run:m App.Main:m", heldName + " App.Run App.Main"},
		// not waiting yet
		{"clr+0x30:r clr+0x20:r SIGlibc+0x3c04f:n App.Other:m", heldName + " App.Other"},
		// another handler: an exception
		{"clr+0x99:r clr+0x40:r SIGlibc+0x3c04f:n App.Null:m",
			"clr+0x99 clr+0x40 " + signalMark + "libc+0x3c04f App.Null"},
		{"__futex_wait:n clr+0x20:r SIGlibc+0x3c04f:n native_work:n App.Run:m",
			"__futex_wait clr+0x20 " + signalMark + "libc+0x3c04f native_work App.Run"},
		// the program's own handler
		{"__futex_wait:n mine:n SIGlibc+0x3c04f:n App.Run:m",
			"__futex_wait mine " + signalMark + "libc+0x3c04f App.Run"},
		{"App.Handler:m clr+0x20:r SIGlibc+0x3c04f:n App.Run:m",
			"App.Handler clr+0x20 " + signalMark + "libc+0x3c04f App.Run"},
		{"__futex_wait:n clr+0x20:r SIGlibc+0x3c04f:n",
			"__futex_wait clr+0x20 " + signalMark + "libc+0x3c04f"},
		// in the kernel
		{"[kernel]:k __futex_wait:n clr+0x50:r SIGlibc+0x3c04f:n App.Run:m", heldName + " App.Run"},
		{"SIGlibc+0x3c04f:n App.Run:m", signalMark + "libc+0x3c04f App.Run"},
		{"", ""},
	}
	for _, c := range cases {
		stackOf(b.p, index, c.in)
	}
	b.stopped(0)
	for i, c := range cases {
		var got []string
		for j := range b.p.Stacks[i].Frames {
			got = append(got, b.name(i, j))
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.in, got, c.want)
		}
	}
}

// The stack of a thread in the kernel gets one more frame, for the kernel, at the leaf. Frames of the
// sampler's own suspension are omitted.
func TestKernelFrame(t *testing.T) {
	p := NewProcess(1, "x")
	p.Take(&wire.Module{ID: 1, Start: 0x1000, End: 0x2000, Path: "/libc.so.6"})
	frames := []wire.Frame{{Flags: wire.FrameExact | wire.FrameKernel, Module: 1, IP: 0x1010},
		{Flags: wire.FrameKernel, Module: 1, IP: 0x1021}}
	p.Take(&wire.Sample{TID: 1, Frames: frames})
	p.Take(&wire.Sample{TID: 1, Frames: append([]wire.Frame{{Flags: wire.FrameProbe, IP: 5}}, frames...)})
	p.Take(&wire.Sample{TID: 1, Frames: []wire.Frame{{Flags: wire.FrameExact, Module: 1, IP: 0x1010}}})
	b := newBuilder(nil)
	b.process(p)
	var got []string
	for i := range b.p.Stacks {
		got = append(got, fmt.Sprintf("%d:", b.p.Stacks[i].Count))
		for _, f := range b.p.Stacks[i].Frames {
			got = append(got, b.p.Frames[f].Class.String()+" "+b.p.Frames[f].Name)
		}
	}
	if s := strings.Join(got,
		", "); s != "2:, kernel [kernel], native libc.so.6+0x1010, native libc.so.6+0x1020, 1:, native libc.so.6+0x1010" {
		t.Error(s)
	}
}
