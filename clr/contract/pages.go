package contract

import "github.com/seedwalk/seedwalk/context/memory"

// pages reads and caches whole pages during one walk of the tables. Two bounds end the walk: without
// budget, every read fails; after most reads from r, only cached pages can be read.
type pages struct {
	r      memory.Reader
	kept   map[uint64][]byte // nil: the page cannot be read
	reads  int               // reads from r
	budget int               // remaining reads of any kind
	most   int               // bound of reads
	missed int               // reads that failed
}

// Bounds of one walk.
const (
	pageSize  = 4096
	maxPages  = 1 << 11
	maxBudget = 1 << 17
	moreReads = 16 // the factor for a core, in which most reads may fail
)

func newPages(r memory.Reader, incomplete bool) *pages {
	p := &pages{r: r, kept: map[uint64][]byte{}, budget: maxBudget, most: maxPages}
	if incomplete {
		p.budget, p.most = moreReads*p.budget, moreReads*p.most
	}
	return p
}

// spent reports whether the budget was used up.
func (p *pages) spent() bool { return p.budget <= 0 || p.reads >= p.most }

// ReadAt implements memory.Reader.
func (p *pages) ReadAt(b []byte, addr uint64) bool {
	if p.budget--; p.budget < 0 {
		p.missed++
		return false
	}
	from := addr &^ (pageSize - 1)
	if end := addr + uint64(len(b)); end < addr || end > from+pageSize {
		return p.direct(b, addr)
	}
	page, ok := p.kept[from]
	if !ok {
		page = p.load(from)
	}
	if page == nil {
		return p.direct(b, addr) // in a damaged core, part of the page may be present
	}
	copy(b, page[addr-from:])
	return true
}

func (p *pages) load(from uint64) []byte {
	page := make([]byte, pageSize)
	if !p.direct(page, from) {
		page = nil
	}
	p.kept[from] = page
	return page
}

func (p *pages) direct(b []byte, addr uint64) bool {
	if p.reads >= p.most {
		return false
	}
	p.reads++
	ok := p.r.ReadAt(b, addr)
	if !ok {
		p.missed++
	}
	return ok
}
