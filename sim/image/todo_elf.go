package image

// Until the ELF writer stands: ELF images have code, but no headers and
// no unwind data.

func writeELF(im *Image) error { return nil }
