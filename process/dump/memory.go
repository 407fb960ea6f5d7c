package dump

import (
	"slices"
	"sort"

	"github.com/seedwalk/seedwalk/process/live"
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

// Maps returns the mappings: the segments, split and named by the list of files, and the parts of mapped
// files that no segment covers. The core has no permissions of the uncovered parts, so they count as
// executable. In a segment, a file that begins after the segment's start counts as executable too: createdump
// joins adjacent mappings of a file, and keeps only the permissions of the first. Outside of
// files, the page of a thread's instruction pointer counts as executable: createdump may write it with the
// permissions of the page before.
func (c *Core) Maps() []live.Mapping {
	var out []live.Mapping
	next, free := 0, uint64(0) // the next file, and the first address that no mapping covers yet
	for i := range c.segments {
		s := &c.segments[i]
		for next < len(c.Files) && c.Files[next].Start < s.start {
			f := &c.Files[next]
			out = appendUnkept(out, f, max(f.Start, free), min(f.End, s.start))
			if f.End > s.start {
				break
			}
			next++
		}
		for at := max(s.start, free); at < s.end; {
			m := live.Mapping{Start: at, End: s.end,
				Exec: s.exec || at > s.start && c.fileAt(next, at) != nil}
			if f := c.fileAt(next, at); f != nil {
				m.Path, m.Offset, m.End = f.Path, f.Offset+at-f.Start, min(f.End, s.end)
			} else if next < len(c.Files) && c.Files[next].Start > at {
				m.End = min(c.Files[next].Start, s.end)
			}
			if at == c.VDSO && c.VDSO != 0 {
				m.Path = "[vdso]"
			}
			if m.Path == "" && m.Start <= c.stack && c.stack < m.End {
				m.Path = "[stack]"
			}
			out, at = append(out, m), m.End
			for next < len(c.Files) && c.Files[next].End <= at {
				next++
			}
		}
		free = max(free, s.end)
	}
	for ; next < len(c.Files); next++ {
		f := &c.Files[next]
		out = appendUnkept(out, f, max(f.Start, free), f.End)
	}
	return c.splitAtThreads(out)
}

// splitAtThreads makes the pages of the threads' instruction pointers executable, in mappings without a file.
func (c *Core) splitAtThreads(maps []live.Mapping) (out []live.Mapping) {
	var pages []uint64
	for i := range c.Threads {
		pages = append(pages, c.Threads[i].Regs.IP()&^(c.pageSize-1))
	}
	slices.Sort(pages)
	for _, m := range maps {
		i, _ := slices.BinarySearch(pages, m.Start)
		for ; !m.Exec && m.Path == "" && i < len(pages) && pages[i] < m.End; i++ {
			code := live.Mapping{Start: max(pages[i], m.Start), End: min(pages[i]+c.pageSize, m.End),
				Exec: true}
			if before := (live.Mapping{Start: m.Start, End: code.Start}); before.Start < before.End {
				out = append(out, before)
			}
			if code.Start < code.End { // not the page of another thread, too
				out = append(out, code)
			}
			m.Start = max(m.Start, code.End)
		}
		if m.Start < m.End {
			out = append(out, m)
		}
	}
	return out
}

// fileAt returns the file at index next if it is mapped at addr, else nil.
func (c *Core) fileAt(next int, addr uint64) *File {
	if next < len(c.Files) && c.Files[next].Start <= addr && addr < c.Files[next].End {
		return &c.Files[next]
	}
	return nil
}

// appendUnkept appends a part of a file's mapping whose content is not in the core. It may be code.
func appendUnkept(out []live.Mapping, f *File, start, end uint64) []live.Mapping {
	if start >= end {
		return out
	}
	return append(out, live.Mapping{Start: start, End: end,
		Offset: f.Offset + start - f.Start, Exec: true, Path: f.Path})
}
