package memory

const (
	pageSize  = 4096
	keptPages = 64 // 256 KiB; a C# compiler at 99 Hz: 163,000 reads without, 29,000 with 32, 22,000 with 64
)

// Pages reads the memory of another process for one job after the other. A job is the walk of a stack with
// the names of its methods: many reads of a few bytes in the same pages. A read of another process costs far
// more than its bytes. So during a job, Pages reads whole pages and keeps the last ones. Between jobs it
// reads only what is asked for. It is not safe for concurrent use.
type Pages struct {
	r     Reader
	begun bool
	pages [keptPages]uint64 // address of each kept page, or 0
	data  [keptPages][pageSize]byte
}

// NewPages returns a reader of the memory that r reads.
func NewPages(r Reader) *Pages { return &Pages{r: r} }

// Begin begins a job and forgets the pages of the last one.
func (p *Pages) Begin() { p.begun, p.pages = true, [keptPages]uint64{} }

// End ends the job.
func (p *Pages) End() { p.begun = false }

// ReadAt implements Reader.
func (p *Pages) ReadAt(b []byte, addr uint64) bool {
	at := addr % pageSize
	page := addr - at
	if !p.begun || page == 0 || uint64(len(b)) > pageSize-at {
		return p.r.ReadAt(b, addr)
	}
	i := page / pageSize % keptPages
	if p.pages[i] != page {
		p.pages[i] = 0
		if !p.r.ReadAt(p.data[i][:], page) {
			return p.r.ReadAt(b, addr) // a part of the page may be readable
		}
		p.pages[i] = page
	}
	copy(b, p.data[i][at:])
	return true
}
