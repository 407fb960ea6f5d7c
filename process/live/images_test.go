package live

import (
	"errors"
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// space is an address space of a few regions, all of whose bytes are 0x5a.
type space struct {
	regions []Region
	opened  []string
}

func (s *space) open(path string) (*pe.File, error) {
	s.opened = append(s.opened, path)
	return nil, errors.New("no such file")
}

func (s *space) region(at uint64) (Region, bool) {
	for _, r := range s.regions {
		if at >= r.Start && at < r.End {
			return r, true
		}
	}
	return Region{}, false
}

func (s *space) ReadAt(p []byte, addr uint64) bool {
	for i := range p {
		p[i] = 0x5a
	}
	return true
}

func TestGeneratedCode(t *testing.T) {
	code := Region{Committed: true, Readable: true, Executable: true}
	region := func(start, end uint64, r Region) Region { r.Start, r.End = start, end; return r }
	image, data, reserved := code, code, code
	image.Image, data.Executable, reserved.Committed = true, false, false
	s := &space{regions: []Region{
		region(0x10000, 0x20000, data), region(0x20000, 0x21000, code), region(0x21000, 0x23000, code),
		region(0x23000, 0x30000, image), region(0x30000, 0x31000, reserved), region(0x31000, 0x32000, code),
	}}
	want := []memory.Range{{Start: 0x20000, End: 0x23000}, {Start: 0x31000, End: 0x32000}}
	expect.Slices(t, generated(s), want)
	s.regions = append(s.regions, Region{Start: 0x32000, End: 0x32000, Committed: true, Executable: true})
	expect.Slices(t, generated(s), want, "a region without bytes")
}

func TestReadImage(t *testing.T) {
	s := &space{regions: []Region{
		{Start: 0x1000, End: 0x2000, Committed: true, Readable: true},
		{Start: 0x2000, End: 0x3000, Committed: true},
		{Start: 0x3000, End: 0x4000, Readable: true},
		{Start: 0x4000, End: 0x9000, Committed: true, Readable: true},
	}}
	b := readImage(s, 0x1000, 0x3800)
	for at, want := range map[int]byte{0: 0x5a, 0xfff: 0x5a, 0x1000: 0, 0x1fff: 0,
		0x2000: 0, 0x3000: 0x5a, 0x37ff: 0x5a} {
		expect.True(t, len(b) == 0x3800 && b[at] == want,
			"%d bytes, at %#x %#x, want %#x", len(b), at, b[at], want)
	}
	expect.True(t, readImage(s, 0x1000, 0x9000) == nil, "an image that goes on where nothing is")
	expect.True(t, readImage(s, 0x1000, maxImage+1) == nil, "an image too large to copy")
}

// An image that cannot be read has a range all the same; what stays loaded stays
// the same module, and a module that is loaded again is another.
func TestImages(t *testing.T) {
	s := &space{}
	loaded := []Loaded{{Base: 0x10000, Size: 0x1000, Path: `C:\x\A.dll`},
		{Base: 0x20000, Size: 0x1000, Path: `C:\x\B.dll`}}
	l := newImages(s, func() []Loaded { return loaded })
	first := l.Table()
	must.True(t, first.Len() == 2 && first.At(0).Err != nil && first.At(1).End == 0x21000 &&
		l.Path("b.dll") == `C:\x\B.dll` && l.Path("c.dll") == "", "%+v", first.At(0))
	ids := [2]uint32{first.At(0).ID, first.At(1).ID}
	loaded = loaded[1:]
	if second := l.Table(); second.Len() != 1 || second.At(0).ID != ids[1] ||
		second.Generation() == first.Generation() || len(s.opened) != 2 {
		t.Errorf("%+v, opened %q", second.At(0), s.opened)
	}
	loaded = []Loaded{{Base: 0x10000, Size: 0x1000, Path: `C:\x\A.dll`}}
	if third := l.Table(); third.At(0).ID == ids[0] || third.At(0).ID == ids[1] {
		t.Error("an image that is loaded again must be another module")
	}
	expect.True(t, l.Precompiled(0x10000) == nil, "an image that cannot be read is not known to be managed")
	loaded = nil
	expect.True(t, l.Table() == nil, "a table without a list")
}
