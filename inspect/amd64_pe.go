package inspect

import (
	"fmt"

	"github.com/seedwalk/seedwalk/pe"
)

func (r *peReader) countAMD64() []Count {
	indirect := 0
	for i := range r.entries() {
		if r.f.EntryAMD64(i).Indirect() {
			indirect++
		}
	}
	return []Count{{"indirect entries", indirect}}
}

func (r *peReader) functionAMD64(rva uint32) (*Function, error) {
	return nil, fmt.Errorf("no entry covers %#x: a leaf function, or no code", rva)
}

func (r *peReader) checkAMD64(c *checker) {
	_ = pe.AMD64
}
