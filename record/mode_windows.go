package record

import "os"

// newMode is the mode of a new file: its folder says who may read it.
func newMode() os.FileMode { return 0o666 }

// bias is empty where threads are suspended at any instruction.
const bias = ""
