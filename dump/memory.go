package dump

import (
	"sort"

	"github.com/seedwalk/seedwalk/live"
)

// ReadAt implements memory.Reader for the memory that is in the core.
func (c *Core) ReadAt(p []byte, addr uint64) bool { return c.ReadSome(p, addr) == len(p) }

// ReadSome implements live.Memory.
func (c *Core) ReadSome(p []byte, addr uint64) (n int) {
	for n < len(p) {
		b := c.from(addr + uint64(n))
		if len(b) == 0 {
			break
		}
		n += copy(p[n:], b)
	}
	return n
}

// from returns the memory from an address to the end of its segment, nil if it is missing.
func (c *Core) from(addr uint64) []byte {
	i := sort.Search(len(c.segments), func(i int) bool { return c.segments[i].start > addr }) - 1
	if i < 0 {
		return nil
	}
	s := &c.segments[i]
	off := addr - s.start
	if off >= s.size {
		return nil
	}
	return c.data[s.off+off : s.off+s.size]
}

// Maps returns the mappings: the segments, with names from the list of files, and the
// mapped files that have no memory in the core.
func (c *Core) Maps() []live.Mapping {
	var out []live.Mapping
	next := 0
	for i := range c.segments {
		s := &c.segments[i]
		for next < len(c.Files) && c.Files[next].End <= s.start {
			if f := &c.Files[next]; len(out) == 0 || out[len(out)-1].End <= f.Start {
				out = append(out, unkept(f))
			}
			next++
		}
		m := live.Mapping{Start: s.start, End: s.end, Exec: s.exec}
		if next < len(c.Files) && c.Files[next].Start <= s.start {
			f := &c.Files[next]
			m.Path, m.Offset = f.Path, f.Offset+s.start-f.Start
		} else if s.start == c.VDSO && c.VDSO != 0 {
			m.Path = "[vdso]"
		}
		out = append(out, m)
	}
	for ; next < len(c.Files); next++ {
		if f := &c.Files[next]; len(out) == 0 || out[len(out)-1].End <= f.Start {
			out = append(out, unkept(f))
		}
	}
	return out
}

// unkept returns a mapping whose content is not in the core. It may be code.
func unkept(f *File) live.Mapping {
	return live.Mapping{Start: f.Start, End: f.End, Offset: f.Offset, Exec: true, Path: f.Path}
}
