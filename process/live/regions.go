package live

import "github.com/seedwalk/seedwalk/context/memory"

// Region is a range of an address space whose pages have the same attributes. Source: Win32
// MEMORY_BASIC_INFORMATION.
type Region struct {
	Start, End uint64
	Committed  bool
	Readable   bool // without a fault
	Executable bool
	Image      bool // part of a mapped image
}

// maxImage bounds a copied image.
const maxImage = 1 << 29

// readImage copies an image from memory, with zeros for missing pages.
func readImage(sys system, base, size uint64) []byte {
	if size > maxImage {
		return nil
	}
	data := make([]byte, size)
	for at := base; at < base+size; {
		r, ok := sys.region(at)
		end := min(r.End, base+size)
		if !ok || end <= at {
			return nil
		}
		if r.Committed && r.Readable {
			sys.ReadAt(data[at-base:end-base], at) // memory that was unmapped meanwhile stays zero
		}
		at = end
	}
	return data
}

// maxRegions bounds the walk of an address space.
const maxRegions = 1 << 20

// firstAddress is the start of a Windows address space.
const firstAddress = 0x10000

// generated returns executable memory outside all images: code of the CLR or another generator.
func generated(sys system) (out []memory.Range) {
	at := uint64(firstAddress)
	for range maxRegions {
		r, ok := sys.region(at)
		if !ok || r.End <= at {
			break
		}
		if r.Committed && r.Executable && !r.Image {
			if n := len(out); n > 0 && out[n-1].End == r.Start {
				out[n-1].End = r.End
			} else {
				out = append(out, memory.Range{Start: r.Start, End: r.End})
			}
		}
		at = r.End
	}
	return out
}
