// Package sim simulates processes with suspended threads: byte-exact stacks, a CLR,
// locks, and a collector, under a scheduler that can try every order of their steps.
// seedwalk's own snapshot, seed, unwind, and merge run against such a process through
// the interfaces that they use on real CLRs.
//
// Sources: those of package sim/vm; David Broman, "Profiler stack walking:
// basics and beyond".
//
// Glossary. A *kit* is the code of a process. A *world* is one run of it. A
// *run number* seeds everything random: the same number gives the same world, byte
// for byte.
//
// Strategy. Every thread is an ordinary Go function over Thread's methods and runs as a
// coroutine. The functions that it calls execute on a simulated machine, and each of
// their steps is a scheduling point. The sampler is a thread too. It runs the product's
// code, whose calls of the CLR come back to this package.
//
// Known gaps: one process; no memory model weaker than sequential consistency;
// time is counted in steps.
package sim

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
)

// Setup selects what kind of world to make.
type Setup struct {
	Variant vm.Variant
	Arch    image.Arch
	Run     uint64 // of the kit and of the threads' registers
	Fine    bool   // every instruction is a scheduling point; otherwise only calls are
	Stack   uint64 // size of the threads' stacks, bytes; 0: StackSize
}

func (s Setup) stack() uint64 {
	if s.Stack == 0 {
		return StackSize
	}
	return s.Stack
}

// Format is the image format of the setup's platform.
func (s Setup) Format() image.Format {
	if s.Variant.Windows() {
		return image.PE
	}
	return image.ELF
}

// World is one run.
type World struct {
	Setup
	Kit  *Kit
	S    *sched.World
	CLR  *vm.CLR
	Host *Host

	// Specials are the stubs of the process that the product's seed knows.
	Specials *managed.Specials

	// CodeTables gives the merge the runtime's own unwind data. A complete stack then has
	// every frame. x86-64 only.
	CodeTables bool

	// SeedTables gives the seeder the runtime's own unwind data of all managed code. With SeedLearns instead,
	// the seeder learns the code of a seed that it has refused. Without both, the seeder reads the code
	// before a seed.
	SeedTables, SeedLearns bool

	// Locks of the process that are not the CLR's.
	Heap, Loader, Env, Tables, Log, Profiler, GoWorld *sched.Lock

	store   *store
	threads []*Thread
	nextID  clr.ThreadID
}

// NewWorld makes a process without threads on scheduler s.
func NewWorld(s *sched.World, setup Setup) (*World, error) {
	kit, err := NewKit(setup.Arch, setup.Format(), setup.Run)
	if err != nil {
		return nil, err
	}
	w := &World{
		store: storeOf(s),
		Setup: setup, Kit: kit, S: s, CLR: vm.New(setup.Variant, setup.Arch),
		Heap: &sched.Lock{Name: "process heap"}, Loader: &sched.Lock{Name: "loader"},
		Env:    &sched.Lock{Name: "environment"},
		Tables: &sched.Lock{Name: "function tables"}, Log: &sched.Lock{Name: "log"},
		Profiler: &sched.Lock{Name: "profiler"}, GoWorld: &sched.Lock{Name: "Go's world"},
		nextID: 0x100,
	}
	w.CLR.Codes.Add(kit.Code, kit.Kinds, FirstFunction)
	w.CLR.Wait = w.waitFrames
	im, f := kit.Lookup(HijackStub)
	w.CLR.HijackStub = im.Base + uint64(f.RVA)
	w.Host = newHost(w)
	s.Hash = w.hash
	return w, nil
}

// LoaderTable adds the system's table of image functions and its lock. If careful is
// set, the product's seed knows the address of the loader, which package clr/managed
// finds in ntdll of real processes.
func (w *World) LoaderTable(careful bool) *sched.Lock {
	w.CLR.Inverted = &sched.Lock{Name: "inverted function table"}
	if careful {
		if w.Specials == nil {
			w.Specials = &managed.Specials{}
		}
		im, f := w.Kit.Lookup(LoadLibrary)
		w.Specials.Loader.Add(memory.Range{Start: im.Base + uint64(f.RVA), End: im.Base + uint64(f.End())})
	}
	return w.CLR.Inverted
}

// Redirects makes collections redirect a thread in managed code if interruptible
// returns true for its ip. The product's seed then knows the redirect stub, which package
// clr/managed finds in the CLR's image of real processes. Without Redirects, collections
// hijack the returns of all threads. Call it before any thread is started.
func (w *World) Redirects(interruptible func(ip uint64) bool) {
	im, f := w.Kit.Lookup(RedirectEntry)
	w.CLR.Redirect = func(t *vm.Thread, ip uint64) bool {
		if !interruptible(ip) {
			return false
		}
		t.M.Redirect(im, f)
		return true
	}
	if w.Specials == nil {
		w.Specials = &managed.Specials{}
	}
	w.Specials.Redirect = w.Kit.Stubs
	if w.Arch == image.ARM64 { // Entrances finds only those of x86-64
		w.Specials.Redirect.Add(prologOf(im, f))
	}
}

func prologOf(im *image.Image, f *image.Func) memory.Range {
	start, body := im.Base+uint64(f.RVA), 0
	for f.Ops[body].Part == image.Prolog {
		body++
	}
	return memory.Range{Start: start, End: start + uint64(f.Ops[body].Off)}
}

// Threads lists the threads that were started, dead ones included.
func (w *World) Threads() []*Thread { return w.threads }

// The distance between the stacks of two threads, and the size of a stack, in bytes.
const (
	stackBase   = 0x7f00_0000_0000
	stackStride = 0x100_0000
	StackSize   = 0x2000
)

// Thread is an application thread. Its body is a Go function, and the functions that it
// calls execute on its simulated stack.
type Thread struct {
	*vm.Thread
	W *World
	A *sched.Actor

	truth []machine.Frame // room for push
}

// Spawn starts a thread that runs body in the thread's first function. The CLR does not
// know the thread until it runs managed code.
func (w *World) Spawn(name string, body func(t *Thread)) *Thread {
	t := &Thread{W: w}
	high := uint64(stackBase + stackStride*(len(w.threads)+1))
	m := w.store.machine(w.Arch, high-w.stack(), high, w.Run^uint64(len(w.threads)+1))
	id := w.nextID
	w.nextID += 0x10
	w.threads = append(w.threads, t)
	t.A = w.S.Go(name, func(a *sched.Actor) {
		t.A = a
		t.Actor = a
		im, f := w.Kit.Lookup(ThreadStart)
		m.Start(im, f)
		t.toCall()
		body(t)
		w.exit(t)
	})
	t.Thread = &vm.Thread{ID: id, TID: uint64(id), Actor: t.A, M: m}
	t.A.Where = t.where
	return t
}

// SpawnManaged starts a thread of the CLR, whose body runs in a method.
func (w *World) SpawnManaged(name string, body func(t *Thread)) *Thread {
	return w.SpawnManagedIn(name, Method(0), body)
}

// SpawnManagedIn is SpawnManaged with the method to run in.
func (w *World) SpawnManagedIn(name, method string, body func(t *Thread)) *Thread {
	t := w.Spawn(name, func(t *Thread) { t.Managed(method, func() { body(t) }) })
	w.adopt(t)
	return t
}

// adopt registers t with the CLR.
func (w *World) adopt(t *Thread) {
	if t.Hijack == nil {
		t.Thread = w.CLR.Adopt(t.Thread)
	}
}

// exit ends a thread. If the CLR knows the thread, the profiler's ThreadDestroyed
// callback runs first and may delay the end.
func (w *World) exit(t *Thread) {
	if t.Hijack != nil {
		t.Mode = vm.Preemptive
		w.CLR.Destroy(t.A, t.Thread)
	}
}

// where describes a thread's stack for people.
func (t *Thread) where() (out []string) {
	for _, f := range t.M.Truth(nil) {
		out = append(out, f.Image.Name+"!"+f.Func.Name)
	}
	return out
}
