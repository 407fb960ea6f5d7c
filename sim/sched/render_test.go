package sched

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/golden"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// mutual is two samplers that suspend each other.
func mutual(w *World) {
	var a, b *Actor
	sampler := func(other **Actor) func(*Actor) {
		return func(me *Actor) {
			me.Where = func() []string { return []string{"kernel32!SuspendThread", "sampler<Loop>"} }
			if _, err := me.SuspendThread(*other); err == nil && me.Stop(*other) == nil {
				me.ResumeThread(*other)
			}
		}
	}
	a = w.Go("sampler 1", sampler(&b))
	b = w.Go("sampler 2", sampler(&a))
}

// heapLock is a sampler that allocates while its target owns the heap.
func heapLock(w *World) {
	heap := &Lock{Name: "heap"}
	app := w.Go("app", func(a *Actor) {
		a.Where = func() []string { return []string{"ntdll!RtlAllocateHeap", "App::Main"} }
		a.Lock(heap)
		a.Yield("allocate %d bytes", 64)
		a.Unlock(heap)
	})
	sampler := w.Go("sampler", func(a *Actor) {
		a.Where = func() []string { return []string{"ntdll!RtlAllocateHeap", "Sampler::Record"} }
		if _, err := a.SuspendThread(app); err != nil || a.Stop(app) != nil {
			return
		}
		a.Note("the context says %s", "app is in the heap")
		a.Lock(heap)
		a.Unlock(heap)
		a.ResumeThread(app)
	})
	w.Go("main", func(a *Actor) {
		a.WaitUntil("both ends", func() bool { return app.Ended() && sampler.Ended() },
			&Group{Name: "threads", All: true, Members: func() []Waitee { return []Waitee{app, sampler} }})
	})
}

// lost waits for an actor that has ended: a deadlock without a cycle.
func lost(w *World) {
	l := &Lock{Name: "gate"}
	w.Go("owner", func(a *Actor) { a.Lock(l) })
	w.Go("waiter", func(a *Actor) { a.Lock(l); a.Unlock(l) })
}

func TestGoldenGraphs(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(*World)
	}{{"mutual", mutual}, {"heap", heapLock}, {"lost", lost}, {"opposite", opposite}} {
		t.Run(c.name, func(t *testing.T) {
			r := Explore(ExploreOptions{StopAtFirst: true}, c.build)
			must.True(t, r.First != nil && r.First.Outcome == Deadlock, "%+v", r)
			golden.Check(t, "testdata/"+c.name+".txt", r.First.Timeline())
			golden.Check(t, "testdata/"+c.name+".dot", r.First.Graph.DOT())
			svg := r.First.Graph.SVG()
			golden.Check(t, "testdata/"+c.name+".svg", svg)
			wellFormed(t, svg)
		})
	}
}

func wellFormed(t *testing.T, svg string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestHostileNames: names and stacks come from programs.
func TestHostileNames(t *testing.T) {
	w := New(Replay(nil), Options{Trace: true})
	l := &Lock{Name: "<l>&\"'\x00\xff\\"}
	w.Go("a\n<b>\x1b\xfe", func(a *Actor) {
		a.Where = func() []string { return []string{strings.Repeat("x", 500), "\x01</text>", "]]>"} }
		a.Lock(l)
		a.Lock(l)
	})
	w.Go("", func(a *Actor) {
		a.Where = func() []string { panic("no stack") }
		a.Lock(l)
	})
	r := w.Run()
	must.Equal(t, r.Outcome, Deadlock)
	wellFormed(t, r.Graph.SVG())
	expect.True(t, strings.Contains(r.Graph.Text(), "Where: panic: no stack") &&
		!strings.Contains(r.Graph.SVG(), "</text></text>"), "%v", r.Graph.Text())
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", []string{""}},
		{"one two", []string{"one two"}},
		{"one two three four", []string{"one two", "  three", "  four"}},
		{"abcdefghijklmnop", []string{"abcdefgh", "  ijklmn", "  op"}},
	} {
		got := wrap(c.text, 8)
		expect.True(t, strings.Join(got, "/") == strings.Join(c.want, "/"), "%q: %q", c.text, got)
	}
}
