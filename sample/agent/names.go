package agent

import (
	"strconv"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/stream"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/unwind"
)

// names assigns short IDs to methods in the stream and resolves each name once, between
// Pin and Unpin. It also caches which method an ip belongs to. Both caches are dropped
// when a module is unloaded.
type names struct {
	host    Process
	ids     map[clr.FunctionID]uint32
	pending []clr.FunctionID
	last    uint32
	ips     map[uint64]function
	placed  map[uint64]bool // addresses whose lines were requested
	places  []located       // addresses to request

	forgotten uint64     // number of times the caches were dropped
	contracts *Contracts // nil: there are none
}

type function struct {
	id clr.FunctionID
	hr clr.HRESULT
}

// located is an address of a method's code.
type located struct {
	function clr.FunctionID
	addr     uint64
}

// maxIPs bounds the cache of ip lookups.
const maxIPs = 1 << 16

func (n *names) init(h Process) {
	n.host = h
	n.forget()
}

func (n *names) forget() {
	n.forgotten++
	n.host.Forget()
	if n.contracts != nil {
		n.contracts.names = nil
	}
	n.ids = map[clr.FunctionID]uint32{}
	n.ips = map[uint64]function{}
	n.placed = map[uint64]bool{}
}

// FunctionFromIP implements merge.Functions. It repeats a failed lookup, because code may
// be published at any time.
func (n *names) FunctionFromIP(ip uint64) (clr.FunctionID, clr.HRESULT) {
	if f, ok := n.ips[ip]; ok {
		return f.id, f.hr
	}
	id, hr := n.host.FunctionFromIP(ip)
	if hr.Failed() || id == 0 {
		return 0, clr.E_FAIL
	}
	if len(n.ips) >= maxIPs {
		clear(n.ips)
	}
	n.ips[ip] = function{id, hr}
	return id, hr
}

// Method implements stream.Methods.
func (n *names) Method(f *merge.Frame) (id uint32, kind unwind.Kind) {
	id, ok := n.ids[f.Function]
	if !ok {
		n.last++
		id = n.last
		n.ids[f.Function] = id
		n.pending = append(n.pending, f.Function)
	}
	if addr := (unwind.Address{IP: f.IP, Exact: f.Exact}).Lookup(); !n.placed[addr] {
		if len(n.placed) >= maxIPs {
			clear(n.placed)
		}
		n.placed[addr] = true
		n.places = append(n.places, located{f.Function, addr})
	}
	return id, f.Kind
}

// Inlined implements stream.Methods. The profiling API does not report inlined methods of a frame.
func (n *names) Inlined(_, _ *merge.Frame) []stream.Inlined { return nil }

// name asks the host. For shared code it asks the runtime's tables, because the profiling
// API reports the class of shared code only in DoStackSnapshot.
func (n *names) name(f clr.FunctionID) (name demangle.MethodName, module string, ok bool) {
	name, module, ok = n.host.FunctionName(f)
	if ok && n.contracts != nil && len(name.TypeArgs) > 0 {
		n.contracts.instance(n.host.Images(), f, &name)
	}
	return name, module, ok
}

// resolve appends the names of new methods and the lines of new addresses.
func (n *names) resolve(to *stream.Stream) {
	for _, f := range n.pending {
		name, module, ok := n.name(f)
		if !ok || name.Name == "" {
			name.Name = "method 0x" + strconv.FormatUint(uint64(f), 16)
		}
		to.Define(n.ids[f], f, name.Readable(), module)
	}
	n.pending = n.pending[:0]
	for _, l := range n.places {
		if s, ok := n.host.Source(l.function, l.addr, false); ok && s.Line > 0 {
			to.Out.Line(&wire.Line{Addr: l.addr, File: s.File, Line: uint32(s.Line)})
		}
	}
	n.places = n.places[:0]
}
