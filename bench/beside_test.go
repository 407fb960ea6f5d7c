// Package bench times our walkers beside their peers, on the same recorded
// stacks, in rounds that alternate, in one run: only the ratios within a run
// mean something on a machine that others use too.
//
// Sources: bench/peer, bench/libunwind, bench/libdwfl, bench/framehop.
//
// Strategy: the peer runs as a process of its own and is asked for a round at a
// time. Of each side the minimum round counts; the spread of the ratios of
// neighbouring rounds tells how much the machine moved. A table of all of them
// stands below the benchmarks' lines. The stacks are of a C++ compiler, of Python,
// of a .NET process, recorded snapshots and made ones. "replay" is no unwinder but
// the limit: a loop that knows every frame's rule beforehand.
//
// Known gaps: PE stacks have no native peer here and stand beside our own walk
// of ELF stacks (RtlVirtualUnwind walks beside ours in profiler/e2e); no ARM64. framehop,
// the strongest, walks along where scripts/framehop.sh has built it.
package bench

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/bench/peer"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/capture"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/snap"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// side is our side of a comparison: all walks of a file, ready to go.
type side struct {
	file   *capture.File
	tables []*module.Table
	us     []*amd64.Unwinder
	mems   []*memory.Window
	regs   context.Registers // of at
	at     unwind.State
	by     seed.Witness
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

// rival is another unwinder, over the same bytes.
type rival struct {
	name, program string
	modes         []peer.Mode // of its cache; one that cannot be emptied has one
}

// input is a set of stacks that was captured for this run.
type input struct {
	name string
	file *capture.File
}

var everyMode = []peer.Mode{peer.Warm, peer.Cold, peer.Off}

// agreed keeps the stacks for which both sides give the same frames, so that both
// do the same work.
func (r *rival) agreed(tb testing.TB, f *capture.File) *capture.File {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "all")
	must.Do(tb, f.Write(path))
	theirs := must.Get(peer.Run(r.program, path))(tb)
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
	must.True(tb, len(kept.Stacks) > 0, "no stack of %d on which %s and we agree", len(f.Stacks), r.name)
	return kept
}

// rivals compiles the peers and the deep program, or skips, counted.
func rivals(tb testing.TB) (all []rival, deep string) {
	tb.Helper()
	dir := tb.TempDir()
	libunwind, err := peer.BuildPeer(dir)
	libdwfl, err2 := peer.Build(dir, "libdwfl", "dwfl", "-ldw", "-lelf")
	deep, err3 := peer.Build(dir, "libunwind", "deep")
	err = errors.Join(err, err2, err3)
	if errors.Is(err, peer.ErrAbsent) {
		tb.Skip("SKIPPED-CHECK: " + err.Error())
	}
	must.Do(tb, err)
	all = []rival{{"libunwind", libunwind, everyMode}, {"libdwfl", libdwfl, []peer.Mode{peer.Warm}}}
	for _, folder := range peer.FramehopFolders() {
		program := must.Get(peer.BuildFramehop(dir, folder))(tb)
		all = append(all, rival{filepath.Base(folder), program, []peer.Mode{peer.Warm, peer.Cold}})
	}
	return all, deep
}

// beside is our side and the peer's.
func (r *rival) beside(b *testing.B, name string, f *capture.File, mode peer.Mode) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "walks")
	must.Do(b, f.Write(path))
	timer := must.Get(peer.StartTimer(r.program, path))(b)
	defer timer.Close()
	s := newSide(f)
	theirs := func(n int) float64 {
		ns, frames, err := timer.Round(mode, n)
		if err != nil || frames == 0 {
			b.Fatal(frames, err)
		}
		return float64(ns) / float64(frames)
	}
	res := against(name, r.name, frames(f), s.ours(mode), theirs)
	s.again(b, mode)
	res.report(b)
}

func frames(f *capture.File) (n int) {
	for i := range f.Stacks {
		n += f.Stacks[i].Limit
	}
	return n
}

// all is a set of stacks beside every peer, and beside the bare reads that no
// unwinder can do without.
func all(b *testing.B, name string, rivals []rival, f *capture.File) {
	for i := range rivals {
		r := &rivals[i]
		same := r.agreed(b, f)
		if len(same.Stacks) < len(f.Stacks) {
			b.Logf("%s: %s and we agree on %d of %d stacks", name, r.name, len(same.Stacks), len(f.Stacks))
		}
		for _, mode := range r.modes {
			name := name + "/" + string(mode)
			b.Run(name+"/"+r.name, func(b *testing.B) { r.beside(b, name, same, mode) })
		}
		if i == 0 {
			b.Run(name+"/warm/replay", func(b *testing.B) { besideReplay(b, name+"/warm", same) })
		}
	}
}

// BenchmarkBeside is our walk beside libunwind's. libunwind has its cache
// enlarged to hold everything. The deep stacks are one stack of known depth;
// the others many, each walked once a round.
func BenchmarkBeside(b *testing.B) {
	peers, deep := rivals(b)
	for _, depth := range []int{8, 32, 128} {
		path := filepath.Join(b.TempDir(), "deep")
		record(b, deep, path, depth)
		f := must.Get(capture.Read(path))(b)
		all(b, fmt.Sprintf("deep-%d", depth), peers, f)
	}
	if f, _, err := peer.FromSnapshots(b.TempDir()); err == nil {
		all(b, "snapshots", peers, f)
	} else if errors.Is(err, snap.ErrAbsent) {
		b.Log("SKIPPED-CHECK: " + err.Error())
	} else {
		b.Fatal(err)
	}
	for _, c := range captured(b) {
		all(b, c.name, peers, c.file)
	}
	for i, path := range rawFiles(b) {
		f, _, err := peer.FromRaw(path, 1500)
		must.Do(b, err)
		all(b, fmt.Sprintf("dotnet-%d", i), peers, f)
	}
}
