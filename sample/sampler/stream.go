package sampler

import (
	"fmt"
	"io"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/stream"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/unwind"
)

// output is the stream to the tool, with the methods of the target.
type output struct {
	stream.Stream
	t       *target.Process
	To      io.Writer
	methods map[clr.FunctionID]method
	byName  map[string]method           // volatile ones, by name and module
	lines   map[uint64][]stream.Inlined // methods inlined at addresses whose lines have been requested
	calls   map[call]int                // how many of lines' methods did not make a call
	last    uint32
	Unnamed uint64
}

// call is a call by the code at an address.
type call struct {
	addr   uint64
	callee clr.FunctionID
}

// method identifies a method in the stream.
type method struct {
	id       uint32
	stub     bool
	volatile bool // the FunctionID may mean another method later
}

// maxMethods bounds the remembered methods; a program has about ten thousand.
const maxMethods = 1 << 20

func NewOutput(t *target.Process, to io.Writer) *output {
	o := &output{t: t, To: to, methods: map[clr.FunctionID]method{}, byName: map[string]method{},
		lines: map[uint64][]stream.Inlined{}, calls: map[call]int{}}
	o.Stream = stream.New(1<<18, o)
	return o
}

func (o *output) Push() error {
	return o.Flush(func(b []byte) error { _, err := o.To.Write(b); return err })
}

// Method implements stream.Methods. Stubs are recognized by their names.
func (o *output) Method(f *merge.Frame) (id uint32, kind unwind.Kind) {
	m, ok := o.methods[f.Function]
	if !ok || m.volatile {
		m = o.name(f)
	}
	if m.stub {
		return m.id, unwind.KindStub
	}
	return m.id, f.Kind
}

// Inlined implements stream.Methods.
func (o *output) Inlined(f, callee *merge.Frame) []stream.Inlined {
	addr := (unwind.Address{IP: f.IP, Exact: f.Exact}).Lookup()
	all := o.inlinedAt(f, addr)
	if len(all) == 0 || callee == nil || f.Exact {
		return all
	}
	key := call{addr, callee.Function}
	uncalled, ok := o.calls[key]
	if !ok {
		if len(o.calls) >= maxMethods {
			clear(o.calls)
		}
		uncalled = o.t.Uncalled(addr, callee.Address().Lookup())
		o.calls[key] = uncalled
	}
	return all[min(uncalled, len(all)):]
}

// inlinedAt returns all methods inlined at an address. It writes the source position of the address to the
// stream once. The method of a volatile FunctionID can change, and the address may then contain new code. So
// it writes the position again after such a change.
func (o *output) inlinedAt(f *merge.Frame, addr uint64) []stream.Inlined {
	if all, ok := o.lines[addr]; ok {
		return all
	}
	if len(o.lines) >= maxMethods {
		clear(o.lines)
	}
	at, ok := o.t.PlaceAt(addr)
	if ok || o.methods[f.Function].volatile { // drops the position of the code that was there before
		o.Out.Line(&wire.Line{Addr: addr, File: at.File, Line: uint32(at.Line)})
	}
	var all []stream.Inlined
	for _, in := range o.t.InlinedAt(addr) {
		m, ok := o.methods[clr.FunctionID(in.Desc|inlinedMethod)]
		if !ok {
			m = o.define(clr.FunctionID(in.Desc|inlinedMethod),
				target.Method{Name: in.Name, Module: in.Module})
		}
		all = append(all, stream.Inlined{Method: m.id, Addr: stream.InlinedAddr(addr, len(all)+1)})
		o.Out.Line(&wire.Line{Addr: all[len(all)-1].Addr, File: in.File, Line: uint32(in.Line)})
	}
	o.lines[addr] = all
	return all
}

// inlinedMethod marks an inlined method, which has another id than the same method when called.
const inlinedMethod = 1

// name returns the method of a managed frame.
func (o *output) name(f *merge.Frame) method {
	if len(o.methods) >= maxMethods {
		clear(o.methods)
		clear(o.byName)
	}
	m := o.t.MethodAt(f.IP)
	if old, ok := o.methods[f.Function]; ok || m.Volatile {
		return o.nameVolatile(f.Function, m, old)
	}
	if m.Same == 0 || m.Same == f.Function {
		return o.define(f.Function, m)
	}
	known, ok := o.methods[m.Same] // the frame is in a part of a method that begins elsewhere
	if !ok {
		known = o.define(m.Same, m)
	}
	o.methods[f.Function] = known
	return known
}

// nameVolatile returns the method with the name of m. The FunctionID may have meant another method, old.
func (o *output) nameVolatile(f clr.FunctionID, m target.Method, old method) method {
	key := m.Name + "\x00" + m.Module
	if m.Name == "" {
		key = fmt.Sprint(f)
	}
	known, ok := o.byName[key]
	if !ok {
		m.Volatile = true
		known = o.define(f, m)
		o.byName[key] = known
	}
	if known != old && old.id != 0 {
		clear(o.lines) // of the code that was there before
		clear(o.calls)
	}
	o.methods[f] = known
	return known
}

func (o *output) define(f clr.FunctionID, m target.Method) method {
	if m.Name == "" {
		m.Name = fmt.Sprintf("method %#x", uint64(f))
		o.Unnamed++
	}
	o.last++
	d := method{o.last, m.Stub, m.Volatile}
	o.methods[f] = d
	o.Define(d.id, f, m.Name, m.Module)
	return d
}
