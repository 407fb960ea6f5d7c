package image

import "errors"

// Until the ELF and ARM64 writers stand: ELF images have code, but no headers and
// no unwind data.

func writeELF(im *Image) error { return nil }
func pdataARM64(im *Image, xdata func(b []byte) (rva uint32)) ([]byte, error) {
	return nil, errors.New("image: no writer of ARM64 unwind data")
}
