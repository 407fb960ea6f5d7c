package sim

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Names of the functions every kit has, besides its random ones.
const (
	ThreadStart   = "thread_start"       // a thread's first function, of the C library or ntdll
	Wait          = "wait"               // where threads block, also there
	HeapAlloc     = "heap_alloc"         // also there
	LoadLibrary   = "load_library"       // also there
	Environment   = "get_environment"    // also there
	TableAdd      = "add_function_table" // also there
	CallManaged   = "call_managed"       // enters managed code from the CLR
	JitCompile    = "jit_compile"        // the CLR's helpers in cooperative and preemptive mode
	GCAlloc       = "gc_alloc"
	GCWait        = "gc_wait"
	Redirect      = "redirect_stub"  // where a redirected thread waits for a collection
	RedirectEntry = "redirect_entry" // where the CLR sends it, without a call
	ThrowHelper   = "throw_helper"
	HijackStub    = "hijack_stub" // target of a hijacked return
	NativeWork    = "native_work" // of the application's own native module
	NativeOther   = "native_other"
	NativeLeaf    = "native_leaf"
	SignalReturn  = "__restore_rt"
)

// natives and methods are how many functions of random shape a kit has.
const natives, methods = 24, 24

// FirstFunction is the FunctionID of a kit's method 0.
const FirstFunction clr.FunctionID = 0x7000_0000_0000

// Kit is the code of a simulated process: images, the module table that seedwalk's
// readers make of them, and the CLR's view of the managed image. A kit is immutable, so
// that all runs share it.
type Kit struct {
	Arch   image.Arch
	Format image.Format
	Run    uint64
	System *image.Image // the C library or ntdll
	CLR    *image.Image
	App    *image.Image // the application's native code
	Code   *image.Image // managed code: known to the CLR only
	Kinds  []vm.Code    // of Code's functions
	Table  *module.Table
	Stubs  managed.Places // stubs of the CLR that are entered without a call

	place map[string]place
}

type place struct {
	im *image.Image
	f  *image.Func
}

// Lookup returns a function by name.
func (k *Kit) Lookup(name string) (*image.Image, *image.Func) {
	p, ok := k.place[name]
	if !ok {
		panic("sim: the kit has no function " + name)
	}
	return p.im, p.f
}

// Native and Method name the random functions.
func Native(i int) string { return fmt.Sprintf("native_%d", i%natives) }

// Method names method i. IL stubs, hidden methods, and dynamic methods have other
// names.
func Method(i int) string { return fmt.Sprintf("Method_%d", i%methods) }

// ILStub names stub i.
func ILStub(i int) string { return fmt.Sprintf("ILStub_%d", i%stubs) }

// HiddenMethod names a method that snapshots of .NET 10 leave out.
func HiddenMethod(i int) string { return fmt.Sprintf("EH_%d", i%stubs) }

const stubs = 4

var kits struct {
	sync.Mutex
	made map[[3]uint64]*Kit
}

// NewKit returns the kit of a run number. Run 0 has only the simple shapes that the small
// scenarios need, equal for every architecture and format.
func NewKit(a image.Arch, f image.Format, run uint64) (*Kit, error) {
	kits.Lock()
	defer kits.Unlock()
	key := [3]uint64{uint64(a), uint64(f), run}
	if k := kits.made[key]; k != nil {
		return k, nil
	}
	k, err := makeKit(a, f, run)
	if err != nil {
		return nil, fmt.Errorf("sim: kit %v/%v run %d: %w", a, f, run, err)
	}
	if kits.made == nil {
		kits.made = map[[3]uint64]*Kit{}
	}
	if len(kits.made) > 64 {
		clear(kits.made) // random worlds make thousands
	}
	kits.made[key] = k
	return k, nil
}

// maker collects the functions of one image.
type maker struct {
	kit   *Kit
	rng   *rand.Rand
	funcs []image.Func
	err   error
}

func (m *maker) add(f image.Func, err error) {
	if err != nil && m.err == nil {
		m.err = err
	}
	m.funcs = append(m.funcs, f)
}

// plain adds a function of a simple shape with a call site.
func (m *maker) plain(name string, fp bool, saves int) {
	if m.kit.Arch == image.ARM64 {
		m.add(image.ShapeARM64{RegI: saves, FramePointer: fp, Calls: 1, Body: 3,
			FrameSize: 96}.Func(m.kit.Format, name))
		return
	}
	regs := []image.Reg{3, 12, 13, 14}[:saves] // RBX R12-R14
	m.add(image.ShapeAMD64{Saves: regs, FramePointer: fp, Alloc: 48, Calls: 1,
		Body: 3}.Func(m.kit.Format, name))
}

// chained adds a function with a frame record like that of most JIT-compiled methods:
// 48 bytes, and 32 bytes for its own calls below them.
func (m *maker) chained(name string) {
	if m.kit.Arch == image.ARM64 || m.kit.Format == image.ELF {
		m.plain(name, true, 0)
		return
	}
	m.add(image.ShapeAMD64{FramePointer: true, FPOffset: 80, Alloc: 48, Calls: 1,
		Body: 3}.Func(m.kit.Format, name))
}

// leaf adds a function that saves, allocates and calls nothing.
func (m *maker) leaf(name string) {
	if m.kit.Arch == image.ARM64 {
		m.add(image.ShapeARM64{Leaf: true, Body: 3}.Func(m.kit.Format, name))
		return
	}
	m.add(image.ShapeAMD64{Leaf: true, Body: 3}.Func(m.kit.Format, name))
}

func (m *maker) root(name string) {
	if m.kit.Arch == image.ARM64 {
		m.add(image.ShapeARM64{Root: true, RegI: 2, Calls: 1, Body: 2,
			FrameSize: 64}.Func(m.kit.Format, name))
		return
	}
	m.add(image.ShapeAMD64{Root: true, Alloc: 40, Calls: 1, Body: 2}.Func(m.kit.Format, name))
}

// random adds a function of random shape that has a call site.
func (m *maker) random(name string) {
	for range 1000 {
		var f image.Func
		if m.kit.Arch == image.ARM64 {
			f = image.RandomARM64(m.rng, m.kit.Format, name)
		} else {
			f = image.RandomAMD64(m.rng, m.kit.Format, name)
		}
		if f.Entry == image.Called && !f.Root && !f.NoInfo && callSite(&f) >= 0 && frameSize(&f) <= MaxFrame {
			m.add(f, nil)
			return
		}
	}
	m.add(image.Func{}, fmt.Errorf("no random shape with a call site for %s", name))
}

// MaxFrame bounds the frames of random functions, bytes: some are larger than a
// page, and a stack still holds dozens.
const MaxFrame = 4608

// frameSize is the largest distance, in bytes, by which f's prolog and body move SP.
func frameSize(f *image.Func) (n int64) {
	for i := range f.Ops {
		for _, e := range f.Ops[i].Effects {
			if (e.Kind == image.Add || e.Kind == image.Set) && e.Imm < 0 {
				n -= e.Imm
			}
		}
	}
	return n
}

// callSite is the index of the first op of f that calls, or -1.
func callSite(f *image.Func) int {
	for i := range f.Ops {
		for _, e := range f.Ops[i].Effects {
			if e.Kind == image.Call {
				return i
			}
		}
	}
	return -1
}

func (m *maker) shape(name string, fp bool, saves int) {
	if m.kit.Run == 0 {
		m.plain(name, fp, saves)
		return
	}
	m.random(name)
}

func (m *maker) build(name string, base uint64) *image.Image {
	im, err := image.Build(m.kit.Arch, m.kit.Format, name, base, m.funcs)
	if err != nil {
		if m.err == nil {
			m.err = err
		}
		return nil
	}
	for i := range im.Funcs {
		f := &im.Funcs[i]
		m.kit.place[f.Name] = place{im, f}
	}
	m.funcs = nil
	return im
}

// The base addresses of images.
const (
	systemBase = 0x7ff8_1000_0000
	clrBase    = 0x7ff8_2000_0000
	appBase    = 0x7ff8_3000_0000
	codeBase   = 0x7ff7_4000_0000
)

func makeKit(a image.Arch, f image.Format, run uint64) (*Kit, error) {
	k := &Kit{Arch: a, Format: f, Run: run, place: map[string]place{}}
	m := &maker{kit: k, rng: rand.New(rand.NewPCG(run, uint64(a)<<8|uint64(f)))}
	m.root(ThreadStart)
	for i, n := range []string{Wait, HeapAlloc, LoadLibrary, Environment, TableAdd} {
		m.plain(n, i%2 == 1, i%3)
	}
	if f == image.ELF {
		m.add(image.SignalReturn(a), nil)
	}
	k.System = m.build("system", systemBase)
	for i, n := range []string{CallManaged, JitCompile, GCAlloc, GCWait, Redirect,
		ThrowHelper, HijackStub, RedirectEntry} {
		m.plain(n, i%2 == 0, 1+i%3)
	}
	if a == image.AMD64 && f == image.PE {
		m.funcs[len(m.funcs)-1] = image.RedirectStub(RedirectEntry)
	}
	k.CLR = m.build("clr", clrBase)
	m.plain(NativeWork, false, 2)
	m.plain(NativeOther, true, 1)
	m.leaf(NativeLeaf)
	for i := range natives {
		m.shape(Native(i), i%3 == 0, i%4)
	}
	k.App = m.build("app", appBase)
	for i := range methods {
		m.shape(Method(i), i%2 == 0, i%3)
		k.Kinds = append(k.Kinds, vm.Method)
	}
	for i := range stubs {
		// IL stubs have frame pointers. Without unwind data, the merge steps over them
		// by the frame pointer.
		m.chained(ILStub(i))
		k.Kinds = append(k.Kinds, vm.Dynamic)
	}
	for i := range stubs {
		m.chained(HiddenMethod(i))
		k.Kinds = append(k.Kinds, vm.Hidden)
	}
	k.Code = m.build("code", codeBase)
	if m.err != nil {
		return nil, m.err
	}
	return k, k.read()
}

// read makes the module table with seedwalk's own readers. The table has the managed
// code only as a range.
func (k *Kit) read() error {
	var mods []module.Module
	for i, im := range []*image.Image{k.System, k.CLR, k.App} {
		m, err := load(uint32(i+1), im)
		if err != nil {
			return err
		}
		mods = append(mods, m)
	}
	gen := uint32(k.Run)<<4 | uint32(k.Arch)<<3 | uint32(k.Format)<<2 | 1
	k.Table = module.NewTable(gen, mods, []memory.Range{{Start: k.Code.Base, End: k.Code.End()}})
	k.Stubs = new(managed.Entrances).Of(k.Table).Redirect
	return nil
}

func load(id uint32, im *image.Image) (module.Module, error) {
	if im.Format == image.PE {
		f, err := pe.FromMemory(im.File, im.Name)
		if err != nil {
			return module.Module{}, fmt.Errorf("image %s: %w", im.Name, err)
		}
		return module.PEFromFile(id, f, im.Name+".dll", im.Base, im.End()), nil
	}
	f, err := elf.New(im.File, im.Name)
	if err != nil {
		return module.Module{}, fmt.Errorf("image %s: %w", im.Name, err)
	}
	m := module.ELFFromFile(id, f, im.Name+".so", im.Base, im.End(), im.Base)
	return m, m.Err
}
