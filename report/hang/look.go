package hang

import (
	"slices"
	"strings"
)

// Frame is a function on a stack.
type Frame struct {
	Name    string // "" if it has none
	Managed bool
}

// Lock is a lock whose owner is certain.
type Lock struct {
	Kind  string // such as "monitor" or "pthread mutex"
	At    string // address of the lock
	Owner uint32 // thread that holds it, 0 if not known
}

// Thread is what two looks saw of a thread.
type Thread struct {
	TID         uint32
	Name        string
	Frames      []Frame // leaf first, of the second look
	Lock        Lock    // Kind is "" if it waits for none
	Ran         bool    // it used processor time between the looks, or its stack changed
	Moved       bool    // its stack changed between the looks
	Cooperative bool    // at both looks the runtime counted it as running managed code
}

// Chain is what one pending task keeps waiting, and how often there is one like it.
type Chain struct {
	Count   int
	Names   []string // what is awaited, then each async method that awaits the one before it
	Queued  bool     // what is awaited is work in the queue of the thread pool
	Blocked []uint32 // threads that wait for the chain
}

// Process is what two looks saw of a process.
type Process struct {
	Threads    []Thread
	Chains     []Chain // of the second look, the most frequent first; none if they were not read
	Processors int     // that it may use; 0 if not known
	Stopped    string  // why the kernel does not run it: "a debugger" or "a signal", else ""
	Once       bool    // there was one look only, so that Ran is not known
}

// Wait is what a thread blocks in.
type Wait uint8

// Kinds of waits.
const (
	NoWait Wait = iota // it runs, or nothing is known
	Idle               // a thread of the runtime, or a worker without work
	Enter              // a lock of managed code or of the C library
	ReaderWriter
	Semaphore
	Task
	Event // wait handles, events, Monitor.Wait, barriers
	Join
	Sleep
	Child // of the process
	Input // files, sockets, polls
	Collection
)

func (w Wait) String() string {
	return [...]string{"running", "idle", "a lock", "a reader-writer lock", "a semaphore", "a task", "an event", "the end of a thread", "time to pass",
		"a child process", "input or output", "a garbage collection"}[w]
}

// known are prefixes of functions by what a thread below them waits for. Managed ones
// outrank those that they call.
var known = []struct {
	wait  Wait
	names []string
}{
	{Task, []string{"System.Threading.Tasks.Task.Wait", "System.Threading.Tasks.Task.InternalWait", "System.Threading.Tasks.Task.SpinThenBlockingWait"}},
	{Semaphore, []string{"System.Threading.SemaphoreSlim.Wait", "System.Threading.Semaphore."}},
	{ReaderWriter, []string{"System.Threading.ReaderWriterLock"}},
	{Join, []string{"System.Threading.Thread.Join"}},
	{Sleep, []string{"System.Threading.Thread.Sleep"}},
	{Collection, []string{"System.GC.Collect", "System.GC._Collect", "GCInterface_Collect"}},
	{Enter, []string{"System.Threading.Monitor.Enter", "System.Threading.Monitor.ReliableEnter", "System.Threading.Monitor.TryEnter", "System.Threading.Lock.", "pthread_mutex_", "__pthread_mutex_"}},
	{Event, []string{"System.Threading.WaitHandle.", "System.Threading.ManualResetEventSlim.", "System.Threading.Monitor.Wait", "System.Threading.CountdownEvent.",
		"System.Threading.Barrier.", "Monitor_Wait", "pthread_cond_", "__pthread_cond_"}},
	{Child, []string{"wait4", "waitid", "waitpid", "__wait4", "__waitid", "System.Diagnostics.Process.WaitForExit"}},
	{Sleep, []string{"nanosleep", "clock_nanosleep", "__clock_nanosleep", "usleep", "sleep"}},
	{Input, []string{"read", "__read", "__libc_read", "write", "__write", "recv", "__recv", "send", "__send", "accept", "__accept", "connect", "__connect", "poll", "__poll", "ppoll", "epoll_", "select", "__select",
		"pselect", "open", "__open", "fsync", "flock", "fcntl", "pread", "pwrite"}},
}

// waitOf finds what the leaf of a stack blocks in. From the leaf on, the last function that
// is known decides, up to the first managed one outside System.Threading.
func waitOf(frames []Frame) (wait Wait, by string) {
	for _, f := range frames {
		if w := waitIn(f); w != NoWait {
			wait, by = w, f.Name
			continue
		}
		if f.Managed && !strings.HasPrefix(f.Name, "System.Threading.") {
			break
		}
	}
	return wait, by
}

// waitIn finds what one function waits for.
func waitIn(f Frame) Wait {
	for _, k := range known {
		for _, name := range k.names {
			whole := !strings.HasSuffix(name, ".") && !strings.HasSuffix(name, "_") && !strings.Contains(name, ".")
			if whole && f.Name == name || !whole && strings.HasPrefix(f.Name, name) {
				return k.wait
			}
		}
	}
	return NoWait
}

// has reports whether a function whose name begins so is on the stack.
func (t *Thread) has(prefix string) bool {
	return slices.ContainsFunc(t.Frames, func(f Frame) bool { return strings.HasPrefix(f.Name, prefix) })
}

// worker reports whether a thread is one of the pool; busy, whether it has work.
func (t *Thread) worker() (is, busy bool) {
	return t.has("System.Threading.PortableThreadPool.WorkerThread."), t.has("System.Threading.ThreadPoolWorkQueue.Dispatch")
}

// Wait is what the thread blocks in, and the function that says so.
func (t *Thread) Wait() (Wait, string) {
	wait, by := waitOf(t.Frames)
	if is, busy := t.worker(); is && !busy {
		return Idle, by
	}
	managed := slices.ContainsFunc(t.Frames, func(f Frame) bool { return f.Managed })
	if strings.HasPrefix(t.Name, ".NET ") && !managed || t.has("System.Threading.PortableThreadPool.GateThread") {
		return Idle, by
	}
	if t.Lock.Kind != "" && t.Lock.Owner != 0 {
		return Enter, by
	}
	return wait, by
}

// Place is the function that called the wait: the first managed one outside the
// framework's System namespaces, else the first managed one, else the leaf.
func (t *Thread) Place() string {
	first := ""
	for _, f := range t.Frames {
		if f.Managed && f.Name != "" {
			if !strings.HasPrefix(f.Name, "System.") && !strings.HasPrefix(f.Name, "Interop.") && !strings.HasPrefix(f.Name, "Microsoft.") {
				return f.Name
			}
			if first == "" {
				first = f.Name
			}
		}
	}
	if first == "" && len(t.Frames) > 0 {
		first = t.Frames[0].Name
	}
	return first
}
