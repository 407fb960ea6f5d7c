// Package bench times our walkers beside their peers, on the same recorded
// stacks, in rounds that alternate, in one run: only the ratios within a run
// mean something on a machine that others use too.
//
// Sources: bench/peer and bench/libunwind.
//
// Strategy: the peer runs as a process of its own and is asked for a round at a
// time. Of each side the minimum round counts; the spread of the ratios of
// neighbouring rounds tells how much the machine moved. A table of all of them
// stands below the benchmarks' lines.
//
// Known gaps: PE stacks have no native peer here and stand beside our own walk
// of ELF stacks (RtlVirtualUnwind walks beside ours in profiler/e2e); no ARM64;
// framehop is no peer yet.
package bench

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/bench/peer"
	"github.com/seedwalk/seedwalk/capture"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/testkit/snap"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
)

// side is our side of a comparison: all walks of a file, ready to go.
type side struct {
	file   *capture.File
	tables []*module.Table
	us     []*amd64.Unwinder
	mems   []*memory.Window
	regs   context.Registers // of at
	at     unwind.State
	out    [4096]unwind.Frame
}

func newSide(f *capture.File) *side {
	s := &side{file: f}
	for i := range f.Sets {
		u := managed.NewAMD64()
		s.tables = append(s.tables, f.Table(i))
		u.SetTable(s.tables[i])
		s.us = append(s.us, u)
	}
	for i := range f.Stacks {
		s.mems = append(s.mems, memory.New(f.Stacks[i].Runs...))
	}
	return s
}

// walk walks stack i and returns its number of frames.
func (s *side) walk(i int) int {
	w := &s.file.Stacks[i]
	return s.us[w.Set].Walk(s.begin(w), s.mems[i], nil, s.out[:w.Limit]).N
}

// begin makes the side's state that of the thread of w.
func (s *side) begin(w *capture.Stack) *unwind.State {
	s.regs.Arch, s.regs.AMD64 = context.ArchAMD64, w.Regs
	s.at = unwind.Interrupted(&s.regs)
	return &s.at
}

// round walks everything n times.
func (s *side) round(m peer.Mode, n int) (ns, frames uint64) {
	for range n {
		if m != peer.Warm {
			s.empty(m == peer.Off)
		}
		begin := time.Now()
		for i := range s.file.Stacks {
			frames += uint64(s.walk(i))
		}
		ns += uint64(time.Since(begin))
	}
	return ns, frames
}

// empty empties the caches, and switches them off or on.
func (s *side) empty(off bool) {
	for _, u := range s.us {
		u.DisableCache(off)
	}
}

// agreed keeps the walks on which both sides give the same frames, so that both
// do the same work.
func agreed(tb testing.TB, program string, f *capture.File) *capture.File {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "all")
	if err := f.Write(path); err != nil {
		tb.Fatal(err)
	}
	theirs, err := peer.Run(program, path)
	if err != nil {
		tb.Fatal(err)
	}
	s, kept := newSide(f), &capture.File{Sets: f.Sets}
	for i := range f.Stacks {
		n := s.walk(i)
		same := n == len(theirs[i]) && n > 0
		for k := 0; same && k < n; k++ {
			same = s.out[k].IP == theirs[i][k].IP && s.out[k].SP == theirs[i][k].SP
		}
		if same {
			w := f.Stacks[i]
			w.Limit = n
			kept.Stacks = append(kept.Stacks, w)
		}
	}
	if len(kept.Stacks) == 0 {
		tb.Fatal("no walk on which both agree")
	}
	return kept
}

// programs compiles the peer and the deep program or skips, counted.
func programs(tb testing.TB) (libunwind, deep string) {
	tb.Helper()
	dir := tb.TempDir()
	libunwind, err := peer.BuildPeer(dir)
	if err == nil {
		deep, err = peer.Build(dir, "deep")
	}
	if errors.Is(err, peer.ErrAbsent) {
		tb.Skip("SKIPPED-CHECK: " + err.Error())
	}
	if err != nil {
		tb.Fatal(err)
	}
	return libunwind, deep
}

// beside is our side and the peer's.
func beside(b *testing.B, name, program string, f *capture.File, mode peer.Mode) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "walks")
	if err := f.Write(path); err != nil {
		b.Fatal(err)
	}
	timer, err := peer.StartTimer(program, path)
	if err != nil {
		b.Fatal(err)
	}
	defer timer.Close()
	s := newSide(f)
	theirs := func(n int) float64 {
		ns, frames, err := timer.Round(mode, n)
		if err != nil || frames == 0 {
			b.Fatal(frames, err)
		}
		return float64(ns) / float64(frames)
	}
	frames := 0
	for i := range f.Stacks {
		frames += f.Stacks[i].Limit
	}
	r := against(name, "libunwind", frames, s.ours(mode), theirs)
	s.again(b, mode)
	r.report(b)
}

func both(b *testing.B, name, program string, f *capture.File) {
	for _, mode := range []peer.Mode{peer.Warm, peer.Cold, peer.Off} {
		name := name + "/" + string(mode)
		b.Run(name, func(b *testing.B) { beside(b, name, program, f, mode) })
	}
}

// BenchmarkBeside is our walk beside libunwind's. libunwind has its cache
// enlarged to hold everything. The deep stacks are one stack of known depth;
// the others many, each walked once a round.
func BenchmarkBeside(b *testing.B) {
	program, deep := programs(b)
	for _, depth := range []int{8, 32, 128} {
		path := filepath.Join(b.TempDir(), "deep")
		record(b, deep, path, depth)
		f, err := capture.Read(path)
		if err != nil {
			b.Fatal(err)
		}
		both(b, fmt.Sprintf("deep-%d", depth), program, agreed(b, program, f))
	}
	if f, _, err := peer.FromSnapshots(b.TempDir()); err == nil {
		both(b, "snapshots", program, agreed(b, program, f))
	} else if errors.Is(err, snap.ErrAbsent) {
		b.Log("SKIPPED-CHECK: " + err.Error())
	} else {
		b.Fatal(err)
	}
	for i, path := range rawFiles(b) {
		f, _, err := peer.FromRaw(path, 1500)
		if err != nil {
			b.Fatal(err)
		}
		both(b, fmt.Sprintf("dotnet-%d", i), program, agreed(b, program, f))
	}
}
