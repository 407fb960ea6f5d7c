package record

import "os"

// newMode is the mode of a new file: its folder says who may read it.
func newMode() os.FileMode { return 0o666 }

// bias is empty where threads are suspended at any instruction.
const bias = ""

// suspends is what the snapshot mode does.
const suspends = "one thread is suspended at a time, and the CLR asked for its stack, by a library in the process"

// LibraryName is the file of the library that asks the CLR for stacks (--mode snapshot).
const LibraryName = "seedwalk_profiler.dll"
