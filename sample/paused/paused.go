package paused

import (
	"bytes"
	"errors"
	"slices"

	"github.com/seedwalk/seedwalk/clr/metadata"
	"github.com/seedwalk/seedwalk/clr/tasks"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/walk"
	"github.com/seedwalk/seedwalk/symbol"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Process is a core, or a running process whose threads are inspected one at a time while each is stopped.
// For each thread, the caller calls Read while the thread is stopped, and Walk after it runs again. It is not
// safe for concurrent use.
type Process struct {
	Reread func() []live.Mapping // returns the current mappings; nil if they cannot change

	target *target.Process
	walker *walk.Walker
	names  map[*elf.File]*symbol.Table

	waiters []waiter
	managed []managedWaiter

	core   bool   // pages may be missing
	left   int    // frames that further stacks of a core may have
	passed uint64 // an address of memory without which a frame of the current walk is doubtful, 0 if none
	keep   bool   // stacks are kept for Tasks
	moves  bool   // the process is running
	kept   []tasks.Stack
	held   *held // of the walk under way, if stacks are kept
}

// Errors of Open: the copies are of another process.
var (
	ErrOther   = errors.New("the process has another number")
	ErrYounger = errors.New("the process started after the copies were made")
)

// Thread is a stopped thread's registers and stack.
type Thread struct {
	TID     uint32
	Regs    context.Registers
	Partial bool // only sp and ip are known
	Stack   memory.Run
	Cut     bool // the copy ends before the stack's end
	Extra   []byte
	word    lockWord
	block   Block
	limited bool   // the wait of block has a time limit
	base    uint64 // the thread pointer, 0 if unknown
}

// StackFrame is a frame with its names.
type StackFrame struct {
	merge.Frame
	Name   string         // "" if nothing covers it
	Module string         // path of a native image, or an assembly's name
	Offset uint64         // in a native image; in its file if the image could not be read
	Source metadata.Place // of managed code that has a Portable PDB
}

// Stack is a thread's stack, leaf first. Gap is why it is incomplete, 0 if it is complete.
type Stack struct {
	TID    uint32
	Frames []StackFrame
	Gap    merge.Gap
	At     uint64 // where an incomplete walk ended
	// Lacks is an address of memory that the walk needed and the core lacks, 0 if none. EndsThere means that
	// the stack ends for this reason. Otherwise the frames below are doubtful.
	Lacks     uint64
	EndsThere bool
	Lock      Lock   // that the thread waits for; Locks fills it in
	Joins     uint32 // thread whose end it waits for, 0 if none is certain; Locks fills it in
	// Cooperative: the runtime counts the thread as running managed code, so a collection waits for it. Locks
	// sets it.
	Cooperative bool
	Suspends    bool  // it is stopping all other threads, mostly for a collection; Locks sets it
	Block       Block // what it waits for in a system call
	Limited     bool  // that wait has a time limit; false if that is unknown
	Overflow    bool  // a signal handler of the thread handles a stack overflow
}

// newPausedProcessOf is New for a running process, whose files are read too.
func newPausedProcessOf(pid int, a context.Arch, mem live.Memory, loader *live.Loader,
	maps []live.Mapping) *Process {
	s := New(a, mem, loader, maps)
	if s.target.File = target.FilesOf(pid); s.target.Names != nil {
		s.target.Names.File = s.target.File
	}
	return s
}

// New prepares to walk the threads of a process of architecture a.
func New(a context.Arch, mem live.Memory, loader *live.Loader, maps []live.Mapping) *Process {
	s := &Process{target: target.New(0, a, mem, loader), walker: walk.New(a),
		names: map[*elf.File]*symbol.Table{}}
	s.walker.Unproven, s.walker.MaxFrames = s.target.Unproven, maxFrames
	s.Set(maps)
	if s.target.Tables != nil {
		s.walker.SetStubs(s.target.Stubs())
		s.target.Threads.Read()
	}
	return s
}

// Over prepares to walk the threads of a process that is also being sampled.
func Over(t *target.Process, w *walk.Walker) *Process { return &Process{target: t, walker: w} }

// Set replaces the mappings.
func (s *Process) Set(maps []live.Mapping) {
	s.target.Set(maps)
	s.walker.Unmanaged.SetTable(s.target.Table)
	s.use()
}

// use gives the runtime's tables to the walker once they are verified.
func (s *Process) use() {
	if s.walker.Code = nil; s.target.Tables != nil && s.target.Tables.MapProven() {
		s.walker.Code = walk.CodeOf(s.target.Tables, s.target.Steps)
	}
}

// Modules returns the images as of the last walk.
func (s *Process) Modules() *module.Table { return s.target.Table }

// Maps reports whether the process has a mapping at addr.
func (s *Process) Maps(addr uint64) bool {
	has := func(m live.Mapping) bool { return m.Start <= addr && addr < m.End }
	return slices.ContainsFunc(s.target.Maps, has)
}

// Outer returns our number of the thread that the process calls tid, false if it has no such thread.
func (s *Process) Outer(tid uint32) (uint32, bool) { return s.target.Threads.Outer(tid) }

// Runtime reports whether a readable runtime was found, and if not, why.
func (s *Process) Runtime() (found bool, why string) { return s.target.Tables != nil, s.target.Why }

// maxFrames bounds a stack. A frame of a recursive method has at least 16 bytes, so 8 MB of stack, the usual
// limit of a main thread, have at most 524,288 frames.
const maxFrames = 1 << 20

// A hostile core can give all its threads one large stack. maxCoreFrames bounds the frames of all its
// stacks, at about 200 bytes each. A thread that is walked after that shows leastFrames at most.
const (
	maxCoreFrames = 2 * maxFrames
	leastFrames   = 256
)

// Most bytes to copy: of a stack with a known end, of another stack (a coroutine's on a heap), and of the
// runtime's Thread.
const (
	maxPausedStack = 64 << 20
	maxUnknown     = 256 << 10
	extraPaused    = 256
)

// Read copies the stack of a stopped thread, of at most maxPausedStack bytes. r are the thread's registers.
// If the copy does not reach the stack's end, Cut is set in the result.
func (s *Process) Read(tid uint32, r *context.Registers, st live.Stood) Thread {
	th := Thread{TID: tid, Regs: *r, base: st.Base}
	th.Stack, th.Cut = s.copyStack(r.SP(), st.Base)
	if o := s.target.Threads.Objects[tid]; o != 0 {
		b := make([]byte, extraPaused)
		th.Extra = b[:s.target.Mem.ReadSome(b, o)]
	}
	if s.keep {
		s.kept = append(s.kept, tasks.Stack{TID: tid, Addr: th.Stack.Addr,
			Size: uint64(len(th.Stack.Data)) &^ 7, Data: withRegisters(th.Stack.Data, r)})
	}
	return th
}

// copyStack copies from the red zone below sp to the stack's end.
func (s *Process) copyStack(sp, base uint64) (run memory.Run, cut bool) {
	m := s.stackAt(sp)
	if m == nil {
		return run, false
	}
	from, end, limit := max(sp-walk.RedZone, m.Start), m.End, uint64(maxUnknown)
	switch {
	case base > sp && base < end:
		end, limit = base, maxPausedStack
	case m.Path == "[stack]":
		limit = maxPausedStack
	}
	size := min(end-from, limit)
	b := make([]byte, min(size, walk.FirstStack))
	n := 0
	for {
		got := s.target.Mem.ReadSome(b[n:], from+uint64(n))
		n += got
		if n < len(b) || uint64(n) >= size {
			return memory.Run{Addr: from, Data: b[:n]}, uint64(n) < end-from
		}
		b = append(b, make([]byte, min(len(b), int(size)-n))...)
	}
}

// SetIncomplete marks the memory as that of a core, which may lack pages of the runtime.
func (s *Process) SetIncomplete() {
	s.core, s.left = true, maxCoreFrames
	s.walker.Missing = s.missing
	if s.target.Tables != nil {
		s.target.Tables.SetIncomplete()
	}
}

// Verify verifies the layout of the runtime's tables before stacks are walked.
func (s *Process) Verify() {
	s.target.Verify()
	s.use()
}

// verifySoon is Verify for a running process.
func (s *Process) verifySoon() {
	s.target.VerifySoon()
	s.use()
}

// WalkCopy walks and names a copied stack. If the stack is incomplete, its Gap says why. If the walk fails,
// WalkCopy reads the mappings again and tries once more.
func (s *Process) WalkCopy(c *walk.Capture) Stack { return s.walk(c, 0) }

// walk is WalkCopy for a thread whose thread pointer is base, 0 if unknown.
func (s *Process) walk(c *walk.Capture, base uint64) Stack {
	if s.core {
		s.walker.MaxFrames = min(maxFrames, max(leastFrames, s.left))
	}
	frames, gap := s.follow(c)
	if gap != merge.GapNone && s.Reread != nil {
		s.Set(s.Reread())
		frames, gap = s.follow(c)
	}
	if s.held != nil {
		s.keepHeld(c.TID)
	}
	out := Stack{TID: c.TID}
	frames, gap, out.Overflow = s.resume(c, base, frames, gap)
	out.Gap, out.Lacks = gap, s.passed
	if gap != merge.GapNone {
		out.At = s.walker.Regs.IP()
		if addr := s.lacks(c, gap); addr != 0 {
			out.Lacks, out.EndsThere = addr, true
		}
	}
	for i := range frames {
		if frames[i].Kind != unwind.KindGap {
			out.Frames = append(out.Frames, s.named(&frames[i]))
		}
	}
	s.left -= len(out.Frames)
	return out
}

// lacks returns the address of memory that a core lacks and a walk needed, 0 if the walk ended for another
// reason.
func (s *Process) lacks(c *walk.Capture, gap merge.Gap) uint64 {
	if !s.core {
		return 0
	}
	sp, ip := s.walker.Regs.SP(), s.walker.Address().Lookup()
	switch gap {
	case merge.GapUnreadable:
		if !c.Holds(sp) {
			return sp
		}
	case merge.GapNoInfo, merge.GapBadInfo:
		var b [1]byte
		if s.target.Table.Find(ip) < 0 && !s.target.Mem.ReadAt(b[:], ip) {
			return ip
		}
		if s.target.Tables != nil {
			addr, _ := s.target.Tables.MissingAddr(ip) // 0 if none
			if addr == 0 && s.walker.Address().Exact {
				addr = s.lacksCaller(sp)
			}
			return addr
		}
	}
	return 0
}

// lacksCaller is lacks for a thread that was interrupted in a helper of the runtime, which has no unwind
// data. The walk takes the word at sp for the return address, but only if it is in a method. lacksCaller
// returns the address of the missing memory that describes this method, 0 if none is missing.
func (s *Process) lacksCaller(sp uint64) (addr uint64) {
	if word, ok := memory.Word(s.target.Mem, sp); ok {
		addr, _ = s.target.Tables.MissingAddr(word - 1)
	}
	return addr
}

// missing reports whether a core lacks memory that describes the code at an address.
func (s *Process) missing(ip uint64) bool {
	addr, ok := s.target.Tables.MissingAddr(ip)
	if ok && s.passed == 0 {
		s.passed = addr
	}
	return ok
}

// Walk is WalkCopy for a thread that Read has copied, with the lock that the thread waits for.
func (s *Process) Walk(th *Thread) Stack {
	out := s.walk(&walk.Capture{TID: th.TID, Regs: th.Regs, Stack: th.Stack, Cut: th.Cut, Partial: th.Partial,
		Extra: th.Extra}, th.base)
	out.Block, out.Limited = th.block, th.limited
	if len(out.Frames) > 0 && s.target.Threads.Numbers != nil {
		leaf := &out.Frames[0]
		out.Lock = th.word.native(th.TID, s.target.Threads.Numbers, leaf.Name, leaf.Module)
		if m := s.target.Mapping(out.Lock.At); m != nil && out.Lock.Kind == Mutex {
			out.Lock = named(out.Lock, m.Path)
		}
		if w, ok := th.waits(&out); ok && out.Lock.Kind == NoLock {
			s.waiters = append(s.waiters, w)
		}
		if out.Lock.Kind == NoLock {
			s.waitsManaged(th, &out)
		}
	}
	return out
}

// SetThreads sets how the process numbers its threads. Without it, lock owners are not searched.
func (s *Process) SetThreads(n target.Numbering) { s.target.Threads.Numbers = n }

// Locks adds to walked threads the locks of the runtime for which they wait.
func (s *Process) Locks(stacks []Stack) {
	t := locks{s.target}
	found, managed := t.entered(s.waiters), s.managedOwners()
	for i := range s.waiters {
		w := &s.waiters[i]
		if _, ok := found[w.tid]; ok {
			continue
		}
		if l := t.inRuntime(w); l.Owner != 0 {
			found[w.tid] = l
		}
	}
	for i := range stacks {
		if l, ok := found[stacks[i].TID]; ok {
			stacks[i].Lock = l
		} else if l := managed[stacks[i].TID]; l.Kind == ThreadEnd {
			stacks[i].Joins = l.Owner
		} else if l.Kind != NoLock {
			stacks[i].Lock = l
		}
		stacks[i].Lock = t.withType(stacks[i].Lock)
		stacks[i].Cooperative = s.target.Cooperative(stacks[i].TID)
		stacks[i].Suspends = s.target.Suspends(stacks[i].TID)
	}
	s.waiters = nil
}

// maxStacks bounds the number of stacks that one thread uses: signal stacks, fibers, and segmented stacks.
const maxStacks = 8

// follow walks across stacks: a signal handler may run on another stack than its thread.
func (s *Process) follow(c *walk.Capture) (frames []merge.Frame, gap merge.Gap) {
	c.More, s.passed = nil, 0
	for range maxStacks {
		if s.keep {
			s.holds()
		}
		frames, gap, _ = s.walker.Walk(c)
		at, ok := s.elsewhere(c, gap)
		if !ok {
			break
		}
		next, _ := s.copyStack(at, 0)
		if len(next.Data) == 0 || overlaps(c, next) || !s.unchanged(c) {
			break
		}
		c.More = append(c.More, next)
	}
	return frames, gap
}

// elsewhere returns where a stack may continue after a walk that ended with this gap: at the frame's stack
// pointer if no copied stack contains it, or at its frame pointer if that is in another mapping. A function
// that switches stacks keeps its old frame there. The walker checks the result.
func (s *Process) elsewhere(c *walk.Capture, gap merge.Gap) (at uint64, ok bool) {
	sp, fp := s.walker.Regs.SP(), s.walker.Regs.FP()
	switch gap {
	case merge.GapUnreadable, merge.GapTruncated, merge.GapNoProgress:
	default:
		return 0, false
	}
	if !c.Holds(sp) {
		return sp, gap != merge.GapNoProgress
	}
	own, other := s.target.Mapping(sp), s.target.Mapping(fp)
	return fp, own != nil && other != nil && own.Start != other.Start && !c.Holds(fp)
}

func overlaps(c *walk.Capture, r memory.Run) bool {
	return slices.ContainsFunc(append([]memory.Run{c.Stack}, c.More...),
		func(o memory.Run) bool { return r.Addr < o.End() && o.Addr < r.End() })
}

// unchanged reports whether the thread has not moved since its stack was copied, judged by the bytes that it
// would write first.
func (s *Process) unchanged(c *walk.Capture) bool {
	b := make([]byte, min(len(c.Stack.Data), 4096))
	return s.target.Mem.ReadAt(b, c.Stack.Addr) && bytes.Equal(b, c.Stack.Data[:len(b)])
}

// named returns a frame with its names.
func (s *Process) named(f *merge.Frame) StackFrame {
	out := StackFrame{Frame: *f}
	if f.Function != 0 {
		m := s.target.MethodAt(f.IP)
		if out.Name, out.Module = m.Name, m.Module; m.Stub {
			out.Kind = unwind.KindStub
		}
		out.Source, _ = s.target.PlaceAt(unwind.Address{IP: f.IP, Exact: f.Exact}.Lookup())
		return out
	}
	if f.Module < 0 {
		return out
	}
	m := s.target.Table.At(int(f.Module))
	out.Module, out.Offset = m.Path, f.IP-m.Bias
	if m.ELF == nil {
		if p := s.target.Mapping(f.IP); p != nil && m.PE == nil {
			out.Offset = f.IP - p.Start + p.Offset
		}
		return out
	}
	table := s.names[m.ELF]
	if table == nil {
		table = symbol.ELF(m.ELF, m.Path, symbol.DefaultDebugDirs)
		s.names[m.ELF] = table
	}
	at := out.Offset
	if !f.Exact {
		at--
	}
	if name, _, ok := table.Find(at); ok {
		out.Name = symbol.Demangle(name)
	}
	return out
}
