//go:build linux || (windows && amd64)

package engine

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// Native frames get the names of their functions, methods keep theirs, and no two share an id.
func TestNames(t *testing.T) {
	path, err := os.Executable() // has symbols
	must.Do(t, err)
	n := newNamer(os.Getpid())
	addr, _, ok := uint64(0), uint64(0), false
	for at := uint64(0x400000); at < 0x1400000 && !ok; at += 64 {
		if name, found := n.resolver.Name(path, "", at); found && name != "" {
			addr, ok = at, true
		}
	}
	if !ok {
		t.Skip("SKIPPED-CHECK: the test's own program has no symbols")
	}
	w := wire.NewWriter(nil)
	w.Module(&wire.Module{ID: 1, Path: path, Bias: 0x10000})
	w.Method(&wire.Method{ID: 1, FunctionID: 7, Name: "N.T.M"})
	frames := []wire.Frame{{Module: 1, IP: addr + 0x10000, Flags: wire.FrameExact},
		{Kind: unwind.KindManaged, Method: 1, IP: 5}, {IP: 6}, {Kind: unwind.KindGap}}
	w.Sample(&wire.Sample{TID: 1, Frames: frames})
	w.Event(&wire.Event{TID: 1, Kind: wire.EventCopy, Lock: 3, Frames: frames})
	var out bytes.Buffer
	must.Do(t, n.pass(bytes.NewReader(w.Bytes()), &out))
	names, stacks := map[uint32]string{}, 0
	for rd := wire.NewReader(&out); ; {
		m, err := rd.Next()
		if err == io.EOF {
			break
		}
		must.Do(t, err)
		var got []wire.Frame
		switch m := m.(type) {
		case *wire.Method:
			expect.Equal(t, names[m.ID], "", "another name of id %d, %q", m.ID, m.Name)
			names[m.ID] = m.Name
		case *wire.Sample:
			got = m.Frames
		case *wire.Event:
			got = m.Frames
		}
		if got == nil {
			continue
		}
		stacks++
		want, _ := n.resolver.Name(path, "", addr)
		expect.True(t, names[got[0].Method] == want && names[got[1].Method] == "N.T.M" &&
			got[2].Method == 0 && got[3].Method == 0, "frames %+v with names %v, want %q", got, names, want)
	}
	expect.Equal(t, stacks, 2, "stacks")
}

// writes counts the writes and keeps the bytes.
type writes struct {
	bytes.Buffer
	n int
}

func (w *writes) Write(b []byte) (int, error) {
	w.n++
	return w.Buffer.Write(b)
}

// Small messages go to the client in few writes, also those before a stream that is cut off.
func TestBatches(t *testing.T) {
	const samples = 1000
	w := wire.NewWriter(nil)
	for range samples {
		w.Sample(&wire.Sample{TID: 1, Frames: []wire.Frame{{IP: 5, Kind: unwind.KindManaged}}})
	}
	for name, c := range map[string]struct{ cut, want int }{
		"whole": {0, samples}, "cut off": {1, samples - 1},
	} {
		var out writes
		newNamer(os.Getpid()).pass(bytes.NewReader(w.Bytes()[:w.Len()-c.cut]), &out)
		got, in := 0, wire.NewReader(&out)
		for _, err := in.Next(); err == nil; _, err = in.Next() {
			got++
		}
		expect.True(t, got == c.want && out.n <= 2+out.Cap()/batch,
			"%s: %d of %d messages in %d writes", name, got, c.want, out.n)
	}
}
