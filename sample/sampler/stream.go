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
	lines   map[uint64][]stream.Inlined // methods inlined at addresses whose lines have been requested
	last    uint32
	Unnamed uint64
}

// method identifies a method in the stream.
type method struct {
	id   uint32
	stub bool
}

// maxMethods bounds the remembered methods; a program has about ten thousand.
const maxMethods = 1 << 20

func NewOutput(t *target.Process, to io.Writer) *output {
	o := &output{t: t, To: to, methods: map[clr.FunctionID]method{}, lines: map[uint64][]stream.Inlined{}}
	o.Stream = stream.New(1<<18, o)
	return o
}

func (o *output) Push() error {
	return o.Flush(func(b []byte) error { _, err := o.To.Write(b); return err })
}

// Method implements stream.Methods. Stubs are recognized by their names.
func (o *output) Method(f *merge.Frame) (id uint32, kind unwind.Kind) {
	m, ok := o.methods[f.Function]
	if !ok {
		m = o.name(f)
	}
	if m.stub {
		return m.id, unwind.KindStub
	}
	return m.id, f.Kind
}

// Inlined implements stream.Methods. It writes the source position of an address once. After the methods are
// dropped, positions are written again, because an address may hold new code.
func (o *output) Inlined(f *merge.Frame) []stream.Inlined {
	addr := (unwind.Address{IP: f.IP, Exact: f.Exact}).Lookup()
	if all, ok := o.lines[addr]; ok {
		return all
	}
	if len(o.lines) >= maxMethods {
		clear(o.lines)
	}
	if at, ok := o.t.PlaceAt(addr); ok {
		o.Out.Line(&wire.Line{Addr: addr, File: at.File, Line: uint32(at.Line)})
	}
	var all []stream.Inlined
	for _, in := range o.t.InlinedAt(addr) {
		m, ok := o.methods[clr.FunctionID(in.Desc|inlinedMethod)]
		if !ok {
			m = o.define(clr.FunctionID(in.Desc|inlinedMethod), in.Name, in.Module, false)
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
	}
	name, module, stub, same := o.t.MethodAt(f.IP)
	if name == "" {
		name = fmt.Sprintf("method %#x", uint64(f.Function))
		o.Unnamed++
	}
	if same == 0 || same == f.Function {
		return o.define(f.Function, name, module, stub)
	}
	m, ok := o.methods[same] // the frame is in a part of a method that begins elsewhere
	if !ok {
		m = o.define(same, name, module, stub)
	}
	o.methods[f.Function] = m
	return m
}

func (o *output) define(f clr.FunctionID, name, module string, stub bool) method {
	o.last++
	m := method{o.last, stub}
	o.methods[f] = m
	o.Define(m.id, f, name, module)
	return m
}
