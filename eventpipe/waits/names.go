package waits

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/symbol"
)

// maxMethods bounds the number of known methods.
const maxMethods = 4 << 20

// Frame is an address with its name.
type Frame struct {
	Addr    uint64
	Name    string
	Module  string // file name, "" = not known
	Managed bool
	Named   bool // Name is a function name, not just an address
}

// Image is a native image that was mapped.
type Image struct {
	Start, End, Offset uint64
	Path               string
	BuildID            string // hexadecimal; for a Windows image, its time stamp; "" = none
	Inode              uint64 // of the file on Linux, 0 = unknown
}

// Names resolves addresses to names. Its methods are safe for concurrent use, except Replaced.
type Names struct {
	mu         sync.Mutex
	Runtime    clrevent.Info
	Process    clrevent.Process
	Images     []Image
	nativeName func(im *Image, offset uint64) (at uint64, name string)
	unloads    int
	methods    []method
	ranges     symbol.Ranges
	modules    map[uint64]string
	texts      map[string]string
	threads    map[uint64]uint32 // managed IDs by system ID
	labels     map[uint64]string // names of threads, where known
	starved    int64             // threads that the pool added, because no thread took queued work
}

type method struct {
	name   string
	module uint64
}

// NewNames returns an empty Names.
func NewNames() *Names {
	return &Names{modules: map[uint64]string{}, texts: map[string]string{},
		threads: map[uint64]uint32{}, labels: map[uint64]string{}}
}

// event adds the names in an event. It returns false if the event is damaged.
func (n *Names) event(kind clrevent.Kind, e *event) bool {
	if kind == clrevent.None {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch kind {
	case clrevent.MethodLoad, clrevent.MethodListed, clrevent.MethodUnload:
		m, ok := clrevent.DecodeMethod(e.Payload)
		if ok {
			n.method(kind, &m, e.Timestamp)
		}
		return ok
	case clrevent.ModuleLoad:
		m, ok := clrevent.DecodeModule(e.Payload)
		if ok && len(n.modules) < maxMethods {
			n.modules[m.ID] = baseName(m.IL)
		}
		return ok
	case clrevent.ThreadCreated:
		t, ok := clrevent.DecodeThread(e.Payload)
		if ok && len(n.threads) < maxThreads {
			n.threads[uint64(t.TID)] = t.Index
		}
		return ok
	case clrevent.RuntimeInfo:
		i, ok := clrevent.DecodeRuntime(e.Payload)
		if ok {
			n.Runtime = i
		}
		return ok
	case clrevent.PoolAdjusted:
		p, ok := clrevent.DecodeAdjustment(e.Payload)
		if p.Starved {
			n.starved++
		}
		return ok
	case clrevent.ProcessInfo:
		p, ok := clrevent.DecodeProcess(e.Payload)
		if ok {
			n.Process = p
		}
		return ok
	}
	return true
}

func (n *Names) method(kind clrevent.Kind, m *clrevent.Method, now uint64) {
	if kind == clrevent.MethodUnload {
		n.ranges.Close(m.Start, now)
		n.unloads++
		return
	}
	if len(n.methods) >= maxMethods {
		return
	}
	r := symbol.Range{Start: m.Start, End: m.Start + uint64(m.Size),
		Until: symbol.Always, Value: int32(len(n.methods))}
	if kind == clrevent.MethodListed {
		r.Listed = true
	} else {
		r.From = now
	}
	if n.ranges.Add(r) {
		n.methods = append(n.methods, method{n.intern(m.FullName()), m.Module})
	}
}

func (n *Names) intern(s string) string {
	if t, ok := n.texts[s]; ok {
		return t
	}
	n.texts[s] = s
	return s
}

// SameMethod reports whether two addresses are in the same code of a known method.
func (n *Names) SameMethod(x, y, time uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	i, ok1 := n.managed(x, time)
	j, ok2 := n.managed(y, time)
	return ok1 && ok2 && i == j
}

// Frame names an address of a stack at a time. The first address of a stack is a return
// address too, because the leaf called the runtime.
func (n *Names) Frame(addr, time uint64) Frame {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := Frame{Addr: addr}
	if i, ok := n.managed(addr, time); ok {
		m := &n.methods[i]
		f.Name, f.Module, f.Managed, f.Named = m.name, n.modules[m.module], true, true
		return f
	}
	n.native(&f)
	return f
}

// managed looks up the address before a return address, and then the address itself: a call
// may be the last instruction of a method.
func (n *Names) managed(addr, time uint64) (int32, bool) {
	if i, ok := n.ranges.Find(addr-1, time); ok {
		return i, true
	}
	return n.ranges.Find(addr, time)
}

func (n *Names) native(f *Frame) {
	for i := range n.Images {
		m := &n.Images[i]
		if f.Addr < m.Start || f.Addr >= m.End {
			continue
		}
		offset := f.Addr - m.Start + m.Offset
		f.Module = baseName(m.Path)
		if n.nativeName != nil {
			offset, f.Name = n.nativeName(m, offset)
		}
		if f.Named = f.Name != ""; !f.Named {
			f.Name = fmt.Sprintf("%s+%#x", f.Module, offset)
		}
		return
	}
	f.Name = fmt.Sprintf("%#x", f.Addr)
}

// baseName returns the last part of a Unix or Windows path.
func baseName(p string) string {
	if p == "" {
		return ""
	}
	return path.Base(strings.ReplaceAll(p, `\`, "/"))
}

// Frames names a stack at a time, leaf first.
func (a *Analysis) Frames(id StackID, time uint64) (out []Frame) {
	switch id {
	case NoStack:
		return []Frame{{Name: "[no stack]"}}
	case LostStack:
		return []Frame{{Name: "[stack lost]"}}
	}
	for _, addr := range a.Stack(id) {
		out = append(out, a.Names.Frame(addr, time))
	}
	return out
}

// ThreadName returns a thread's name, "" if it is unknown.
func (n *Names) ThreadName(id uint64) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.labels[id]
}

// Label gives a thread without a name the one that find returns. If that is "", the next Label tries again.
// find must not use n.
func (n *Names) Label(id uint64, find func() string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.labels[id] == "" && len(n.labels) < maxThreads {
		if name := find(); name != "" {
			n.labels[id] = name
		}
	}
}

// AddImages adds mapped images. Known images are not replaced.
func (n *Names) AddImages(images []Image) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, im := range images {
		if !slices.Contains(n.Images, im) {
			n.Images = append(n.Images, im)
		}
	}
}

// Starved returns how often the thread pool added a thread, because no thread took queued work.
func (n *Names) Starved() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.starved
}

// Replaced reports whether code was freed, so that one address may have several names.
func (n *Names) Replaced() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.unloads > 0
}

// SetNative sets the function that names native code. find receives an image and a return address as an
// offset in the image's file. It returns the address as the image's own symbols count it, and the name of the
// function. Calls after the first one have no effect.
func (n *Names) SetNative(find func(im *Image, offset uint64) (at uint64, name string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.nativeName == nil {
		n.nativeName = find
	}
}
