package dump

import "encoding/binary"

// Signals that end a process and write a core, except SIGTRAP: gcore stops threads with it. SIGQUIT, SIGXCPU,
// and SIGXFSZ are no faults of the program.
var fatal = map[int]string{4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV", 31: "SIGSYS"}

// faults are the signals whose siginfo has an address.
var faults = map[int]bool{4: true, 7: true, 8: true, 11: true}

// kernelOwn is the si_code of a fault whose address the processor does not report.
const kernelOwn = 128

// Fatal returns the name of the signal that ended the process in this thread, "" if none did. Without the
// thread's siginfo_t, it returns "": the kernel and some releases of createdump give all threads the same
// Signal.
func (t *Thread) Fatal() string {
	if !t.Told {
		return ""
	}
	return fatal[t.Signal]
}

// signal reads the siginfo_t of the thread whose registers were read last.
func (c *Core) signal(desc []byte) {
	n := len(c.Threads)
	if n == 0 || len(desc) < 24 {
		return
	}
	t, le := &c.Threads[n-1], binary.LittleEndian
	if int(le.Uint32(desc)) != t.Signal {
		return
	}
	t.Told = true
	if code := int32(le.Uint32(desc[8:])); code > 0 && code != kernelOwn && faults[t.Signal] {
		t.Faulted, t.Fault = true, le.Uint64(desc[16:])
	}
}
