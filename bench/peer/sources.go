package peer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/capture"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/snap"
	"github.com/seedwalk/seedwalk/unwind"
)

// Want is what we say of a walk.
type Want struct {
	Frames []Frame // leaf block, and the frame below it where it is known
	Block  int     // frames of the block itself
	Ends   bool    // the stack ends with the block: one more frame of the peer's is news
}

// FromRaw turns the leaf blocks of a raw file's samples into walks; samples
// that begin in managed code have none. max bounds their number.
func FromRaw(path string, max int) (*capture.File, []Want, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	r, err := raw.NewReader(in)
	if err != nil {
		return nil, nil, err
	}
	f, want := &capture.File{}, []Want(nil)
	var last *raw.Image
	for len(f.Stacks) < max {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		w := leafBlock(s.Frames)
		if s.Capture.Status != clr.Captured || s.Capture.Regs.Arch != context.ArchAMD64 || w.Block == 0 ||
			len(s.Images) == 0 {
			continue
		}
		if last != &s.Images[0] {
			last = &s.Images[0]
			f.Sets = append(f.Sets, images(s.Images))
		}
		f.Stacks = append(f.Stacks,
			capture.Stack{Name: fmt.Sprintf("%s#%d", filepath.Base(path), len(f.Stacks)),
				Set:   len(f.Sets) - 1,
				Limit: w.limit(), Regs: s.Capture.Regs.AMD64, Runs: []memory.Run{s.Capture.Stack}})
		want = append(want, w)
	}
	return f, want, nil
}

func images(in []raw.Image) []capture.Image {
	var out []capture.Image
	for _, m := range in {
		out = append(out, capture.Image{Start: m.Start, End: m.End, Bias: m.Bias, Path: m.Path})
	}
	return sorted(out)
}

func sorted(set []capture.Image) []capture.Image {
	sort.Slice(set, func(i, j int) bool { return set[i].Start < set[j].Start })
	return set
}

func leafBlock(frames []merge.Frame) (w Want) {
	for i := range frames {
		f := &frames[i]
		if f.Kind == unwind.KindGap {
			return w
		}
		w.Frames = append(w.Frames, Frame{IP: f.IP, SP: f.SP, Trust: f.Trust})
		if f.Kind != unwind.KindNative && f.Kind != unwind.KindSignal {
			return w
		}
		w.Block++
	}
	w.Ends = true
	return w
}

func (w *Want) limit() int {
	if w.Ends {
		return len(w.Frames) + 1
	}
	return len(w.Frames)
}

// FromSnapshots turns the recorded x86-64 snapshots into walks whose frames are
// the single-stepped truth as far as unwind data gives it. The modules are
// written to dir for the peer to read.
func FromSnapshots(dir string) (*capture.File, []Want, error) {
	a, err := snap.OpenVectors(snap.ForArch("x86_64"))
	if err != nil {
		return nil, nil, err
	}
	f, want := &capture.File{}, []Want(nil)
	for _, name := range a.Programs("x86_64") {
		p, err := a.Load(name)
		if err != nil {
			return nil, nil, err
		}
		base := len(f.Sets)
		for _, mods := range p.Modsets {
			set, err := unpack(a, mods, dir)
			if err != nil {
				return nil, nil, err
			}
			f.Sets = append(f.Sets, set)
		}
		for i := range p.Snapshots {
			s := &p.Snapshots[i]
			w, err := walkOf(p, s)
			if err != nil {
				return nil, nil, err
			}
			w.Set += base
			f.Stacks = append(f.Stacks, w)
			want = append(want, truth(s))
		}
	}
	return f, want, nil
}

func unpack(a *snap.Archive, mods []snap.Mod, dir string) ([]capture.Image, error) {
	var set []capture.Image
	for _, m := range mods {
		data, ok := a.File(m.File)
		if !ok {
			return nil, fmt.Errorf("peer: no module file %q", m.File)
		}
		path := filepath.Join(dir, filepath.FromSlash(m.File))
		if _, err := os.Stat(path); err != nil {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return nil, err
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				return nil, err
			}
		}
		set = append(set, capture.Image{Start: uint64(m.Lo), End: uint64(m.Hi),
			Bias: uint64(m.Bias), Path: path})
	}
	return sorted(set), nil
}

func walkOf(p *snap.Program, s *snap.Snapshot) (w capture.Stack, err error) {
	w = capture.Stack{Name: s.ID, Set: s.Modset, Limit: 256}
	if w.Regs, err = s.AMD64(); err != nil {
		return w, err
	}
	mem, err := p.Window(s)
	if err != nil {
		return w, err
	}
	for _, m := range s.Mem {
		if b, ok := mem.Bytes(uint64(m.Addr), m.Len); ok {
			w.Runs = append(w.Runs, memory.Run{Addr: uint64(m.Addr), Data: b})
		}
	}
	return w, nil
}

// truth is a snapshot's frames as far as unwind data can give them.
func truth(s *snap.Snapshot) (w Want) {
	for i, f := range s.Frames {
		if i >= s.CFIOK {
			break
		}
		out := Frame{IP: uint64(f.PC), Trust: unwind.TrustCFI}
		if f.SP != nil {
			out.SP = uint64(*f.SP)
		}
		w.Frames = append(w.Frames, out)
	}
	w.Block = len(w.Frames)
	return w
}
