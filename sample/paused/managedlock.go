package paused

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/clr/objects"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

type managedLock struct {
	kind    LockKind
	typ     string
	calls   string   // prefix of the names of functions that wait
	owners  []string // fields that hold the owner
	unowned uint32   // their value without an owner
	kernel  bool     // the fields hold the kernel's thread number, otherwise the runtime's
	ends    string   // field that holds the Thread whose end is awaited, instead of owners
}

// managedLocks are the locks that are managed objects.
//
// Source: dotnet/runtime release/9.0, System.Private.CoreLib Lock.cs, ReaderWriterLockSlim.cs.
var managedLocks = []managedLock{
	{SlimLock, "System.Threading.Lock", "System.Threading.Lock.", []string{"_owningThreadId"}, 0, true, ""},
	{ReaderWriter, "System.Threading.ReaderWriterLockSlim", "System.Threading.ReaderWriterLockSlim.",
		[]string{"_writeLockOwnerId", "_upgradeLockOwnerId"}, 1<<32 - 1, false, ""},
	// The runtime keeps the joined object on the stack during the wait. If only one is there, it is that one.
	{ThreadEnd, "System.Threading.Thread", "System.Threading.Thread.Join", nil, 0, false,
		"_DONT_USE_InternalThread"},
}

// managedWaiter is a thread that waits for one of managedLocks, with its stack up to the
// function that wants the lock.
type managedWaiter struct {
	waiter
	lock  *managedLock
	inner []byte // the native frame that the named function has called, if it called one
}

// waitsManaged records a thread that waits for one of managedLocks.
func (s *Process) waitsManaged(th *Thread, st *Stack) {
	at := -1
	lock := slices.IndexFunc(managedLocks, func(l managedLock) bool {
		at = waitsIn(st.Frames, l.calls)
		return at > 0
	})
	if lock < 0 {
		return
	}
	last := slices.IndexFunc(st.Frames,
		func(f StackFrame) bool {
			return f.Kind == unwind.KindManaged &&
				!strings.HasPrefix(f.Name, "System.")
		})
	if last < 0 {
		last = len(st.Frames) - 1
	}
	from, end := th.Regs.SP()-th.Stack.Addr, st.Frames[last].SP-th.Stack.Addr
	if end = min(end, from+maxNative, uint64(len(th.Stack.Data))); from > end {
		return
	}
	data := slices.Clone(th.Stack.Data[from:end])
	var inner []byte
	if from, end := st.Frames[at-1].SP-th.Regs.SP(), st.Frames[at].SP-th.Regs.SP(); from < end &&
		end <= uint64(len(data)) && end-from <= maxInner && st.Frames[at-1].Kind == unwind.KindNative {
		inner = data[from:end]
	}
	s.managed = append(s.managed, managedWaiter{waiter{tid: th.TID, at: th.Regs.SP(), data: data,
		regs: th.Regs}, &managedLocks[lock], inner})
}

// maxInner bounds the native frame behind Thread.Join, bytes. It has about 100.
const maxInner = 1 << 10

// waitsIn returns the first frame of a function whose name begins with calls, -1 if the thread does not wait
// in one. On .NET 9, some of these functions are native.
func waitsIn(frames []StackFrame, calls string) int {
	const near = 24 // frames: those of the wait itself, native (9 in a single file of .NET 10) and managed
	for i := 1; i < min(near, len(frames)); i++ {
		if strings.HasPrefix(frames[i].Name, calls) {
			return i
		}
	}
	return -1
}

// managedOwners finds the locks of s.managed and their owners. If the heap cannot be read, only the kind of a
// lock is known.
func (s *Process) managedOwners() map[uint32]Lock {
	out := map[uint32]Lock{}
	if len(s.managed) == 0 {
		return out
	}
	t := locks{s.target}
	heap, types := t.openHeap()
	read := func(w *managedWaiter) Lock {
		if heap != nil {
			o, ok := t.lockIn(heap, types, w)
			if owner, ended := t.ownerOf(&o, w); ok && w.stays(s.target) {
				return Lock{Kind: w.lock.kind, At: o.Addr, Owner: owner, Ended: ended}
			}
		}
		if owner := t.joins(w); owner != 0 && w.stays(s.target) {
			return Lock{Kind: w.lock.kind, Owner: owner}
		}
		return Lock{Kind: w.lock.kind}
	}
	for i := range s.managed {
		out[s.managed[i].tid] = read(&s.managed[i])
	}
	t.confirmEnded(s.managed, out, read)
	s.managed = nil
	return out
}

// confirmEnded reads the locks whose owners have ended again, after the threads: an owner may be younger than
// the first list of them. If the second reading names another ended owner, only the lock's kind is known.
func (t locks) confirmEnded(all []managedWaiter, found map[uint32]Lock, read func(*managedWaiter) Lock) {
	listed := false
	for i := range all {
		first := found[all[i].tid]
		if !first.Ended {
			continue
		}
		if !listed {
			t.Threads.Read()
			listed = true
		}
		again := read(&all[i])
		if again.Ended && again != first {
			again = Lock{Kind: first.Kind}
		}
		found[all[i].tid] = again
	}
}

// openHeap opens the managed heap, or returns nil if it cannot be read.
func (t locks) openHeap() (*objects.Heap, *objects.Types) {
	if t.Tables == nil || !t.Tables.Proven() || t.Names == nil {
		return nil, nil
	}
	types, err := objects.NewTypes(t.Mem, t.Tables.Descriptor(), t.Names)
	heap, ok := objects.OpenHeap(t.Mem, t.Tables.DebuggerGlobals())
	if err != nil || !ok || !heap.Read() {
		return nil, nil
	}
	return heap, types
}

// lockIn finds the only lock of the wanted type that a waiter's stack refers to.
func (t locks) lockIn(heap *objects.Heap, types *objects.Types,
	w *managedWaiter) (found objects.Object, ok bool) {
	data := withRegisters(w.data, &w.regs)
	for i := 0; i+8 <= len(data); i += 8 {
		at := binary.LittleEndian.Uint64(data[i:])
		if ok && at == found.Addr || !heap.Holds(at) {
			continue
		}
		o, is := types.Load(t.Mem, at)
		if !is || !o.Type.Is(w.lock.typ) || w.lock.ends != "" && t.threadAt(o.Field(w.lock.ends)) == w.tid {
			continue // the waiting thread's own object may be there too
		}
		if ok {
			return found, false
		}
		found, ok = o, true
	}
	return found, ok
}

// joins returns the thread for whose end a waiter waits, 0 if that is not certain. In .NET 9, Thread.Join
// calls a native function. Its frame has the addresses of at most two Threads: the joined one and that of the
// waiter.
func (t locks) joins(w *managedWaiter) (tid uint32) {
	for b := w.inner; len(b) >= 8 && w.lock.kind == ThreadEnd; b = b[8:] {
		switch at := t.threadAt(binary.LittleEndian.Uint64(b)); {
		case at == 0, at == w.tid, at == tid:
		case tid != 0:
			return 0
		default:
			tid = at
		}
	}
	return tid
}

// ownerOf returns the thread that owns a lock, 0 if the lock records none, and whether that thread has ended.
// Some locks record the runtime's number of a thread. The runtime uses such numbers again, so ended is false
// for these locks.
func (t locks) ownerOf(o *objects.Object, w *managedWaiter) (owner uint32, ended bool) {
	if o.Type == nil {
		return 0, false
	}
	if w.lock.ends != "" {
		return t.threadAt(o.Field(w.lock.ends)), false
	}
	for _, name := range w.lock.owners {
		id := o.Uint32(name)
		if id == 0 || id == w.lock.unowned {
			continue
		}
		if !w.lock.kernel {
			owner = t.managedThread(id)
		} else if tid, ok := t.Threads.Outer(id); !ok && t.Threads.Objects[w.tid] != 0 && t.unchanged(o) {
			return id, true // with other numbers, as in a core of a container, the waiter is unknown too
		} else if t.Threads.Objects[tid] != 0 {
			owner = tid
		}
		if owner != 0 && owner != w.tid {
			return owner, false
		}
	}
	return 0, false
}

// threadAt returns the thread whose Thread of the runtime is at an address, 0 if no living thread's is.
func (t locks) threadAt(object uint64) uint32 {
	for tid, at := range t.Threads.Objects {
		if at == object {
			return tid
		}
	}
	return 0
}

// unchanged reports whether an object still has the bytes that were read.
func (t locks) unchanged(o *objects.Object) bool {
	b := make([]byte, len(o.Data))
	return t.Mem.ReadAt(b, o.Addr) && bytes.Equal(b, o.Data)
}

// managedThread returns the thread with the given number of the runtime's, or 0.
func (t locks) managedThread(number uint32) uint32 {
	off, ok := t.Tables.Descriptor().Offset("Thread", "Id")
	if !ok {
		return 0
	}
	for tid, object := range t.Threads.Objects {
		if id, ok := memory.Uint32(t.Mem, object+uint64(off)); ok && id == number {
			return tid
		}
	}
	return 0
}
