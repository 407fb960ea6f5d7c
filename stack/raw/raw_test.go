package raw

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	fs "github.com/seedwalk/seedwalk/testkit/fakestack"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// write makes a file with one table, two samples of each architecture, and a name.
func write(t *testing.T) (path string, want []*Sample) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "raw")
	w := must.Get(Create(path))(t)
	for i, kinds := range [][]fs.Kind{{fs.Root, fs.Managed, fs.Native}, {fs.Root, fs.Native},
		{fs.Root, fs.Managed, fs.Native}, {fs.Root, fs.Native}} {
		world := fs.BuildFor(context.Arches[i/2], kinds...)
		u := managed.NewWalker(world.Arch)
		u.SetTable(world.Table)
		out := make([]merge.Frame, 32)
		r := merge.New(u, world).Merge(&world.Capture, out)
		switch i {
		case 1:
			windows(&world.Capture)
		case 3:
			vectors(&world.Capture)
		}
		if want == nil {
			w.Table(world.Table)
		}
		w.Sample(&world.Capture, &r, out[:r.N])
		m := world.Table.At(0)
		want = append(want, &Sample{Capture: world.Capture, Result: r, Frames: out[:r.N],
			Images: []Image{{m.ID, m.Start, m.End, m.Bias, m.Path, m.BuildID}}})
	}
	w.Method(0x1001, "T.Main")
	must.Do(t, w.Close())
	return path, want
}

// windows adds to a capture what only Windows has: a seed, XMM registers, rsi and rdi in the CLR's frames.
func windows(c *clr.Capture) {
	c.Below = memory.Run{Addr: 0x7f0000000000, Data: []byte{1, 2, 3}}
	regs := &c.Regs.AMD64
	regs.Known = context.AMD64All
	for i := range regs.XMM {
		regs.XMM[i] = context.XMM{uint64(i), ^uint64(i)}
	}
	seeded(c)
}

// vectors sets every register of an ARM64 capture, and a seed.
func vectors(c *clr.Capture) {
	regs := &c.Regs.ARM64
	regs.Known = context.ARM64All
	for i := range regs.X {
		regs.X[i] = 0x1_0000 + uint64(i)
	}
	for i := range regs.D {
		regs.D[i] = ^uint64(i)
	}
	seeded(c)
}

func seeded(c *clr.Capture) {
	c.Seeded, c.Seed = true, c.Regs
	c.Seed.SetIP(c.Regs.IP() + 1)
	f := clr.SnapshotFrame{Function: 7}
	f.Store(&c.Regs, true)
	c.Frames = append(c.Frames, f)
}

func readAll(t *testing.T, b []byte) (out []*Sample, names map[clr.FunctionID]string, err error) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, nil, err
	}
	for {
		s, err := r.Next()
		if err == io.EOF {
			return out, r.Names(), nil
		}
		if err != nil {
			return out, r.Names(), err
		}
		out = append(out, s)
	}
}

func TestRoundTrip(t *testing.T) {
	path, want := write(t)
	b, err := os.ReadFile(path)
	must.Do(t, err)
	got, names, err := readAll(t, b)
	must.True(t, err == nil && len(got) == len(want), "%d samples, %v", len(got), err)
	for i := range got {
		if len(want[i].Capture.Frames) == 0 {
			want[i].Capture.Frames = got[i].Capture.Frames[:0]
		}
		if d := cmptest.Diff(want[i], got[i]); d != "" {
			t.Errorf("sample %d\n got %+v\nwant %+v\n%s", i, got[i], want[i], d)
		}
	}
	expect.Equal(t, names[0x1001], "T.Main", "names %v", names)
}

// A file truncated anywhere gives the samples before the cut, without a panic.
func TestCut(t *testing.T) {
	path, _ := write(t)
	b, _ := os.ReadFile(path)
	for n := len(magic); n < len(b); n += 7 {
		got, _, err := readAll(t, b[:n])
		must.True(t, err == nil && len(got) <= 4, "cut at %d: %d samples, %v", n, len(got), err)
	}
	_, err := NewReader(bytes.NewReader(b[:4]))
	expect.True(t, err != nil, "a file without the magic was accepted")
}

// A file of another version is refused with both versions in the error; an unknown architecture is refused
// with its record.
func TestOtherVersions(t *testing.T) {
	_, err := NewReader(bytes.NewReader([]byte("SWRAW002S")))
	expect.True(t, err != nil && strings.Contains(err.Error(), "version 002") &&
		strings.Contains(err.Error(), "reads 004"), "%v", err)
	path, _ := write(t)
	b, _ := os.ReadFile(path)
	at := bytes.Index(b, []byte("S")) // the magic's
	at += 1 + bytes.Index(b[at+1:], []byte{'S'})
	for b[at] != 'S' || binary.LittleEndian.Uint32(b[at+1:]) < 300 {
		at++
	}
	b[at+5+8*8] = byte(len(context.Arches) + 1)
	got, _, err := readAll(t, b)
	expect.True(t, err != nil && len(got) == 0, "%d samples, %v", len(got), err)
}
