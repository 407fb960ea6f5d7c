package inspect

func (r *elfReader) check(c *checker) {
	for _, err := range r.f.Problems() {
		c.add(Malformed, "image", 1, err.Error)
	}
	if r.secs.Err != nil {
		c.add(Malformed, "section", 1, r.secs.Err.Error)
	}
	r.frames.check(c)
}

func (r *elfReader) executable(addr uint64) bool {
	for _, s := range r.f.Segments() {
		if s.Executable() && addr >= s.Vaddr && addr-s.Vaddr < s.Memsz {
			return true
		}
	}
	return len(r.f.Segments()) == 0
}
