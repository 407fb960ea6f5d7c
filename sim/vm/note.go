package vm

import (
	"fmt"
	"strings"

	"github.com/seedwalk/seedwalk/clr"
)

// maxTold bounds the frames that a note names. For a longer walk, the note has the number of frames.
const maxTold = 8

// The frames that a call has reported, for the trace. They are addresses only, so that
// nothing is allocated or named without a trace.
type told struct {
	ip [maxTold]uint64
	id [maxTold]clr.FunctionID
	n  int

	why string // reason why the walk did not begin
}

func (o *told) add(id clr.FunctionID, ip uint64) {
	if o.n < maxTold {
		o.ip[o.n], o.id[o.n] = ip, id
	}
	o.n++
}

// asked traces the call before anything is decided.
type asked struct{ *Call }

func (k asked) String() string {
	of := "of its own thread"
	if k.Thread != 0 {
		of = "of a thread the CLR does not know"
		if t := k.c.Thread(k.Thread); t != nil {
			of = "of " + t.Actor.Name()
		}
	}
	if k.Seed == nil {
		return "DoStackSnapshot " + of + ", no seed"
	}
	return fmt.Sprintf("DoStackSnapshot %s, seed in %s", of, k.name(k.Seed.PC))
}

// answered traces the result of the call.
type answered struct {
	*Call
	hr clr.HRESULT
	by *Row // nil: the walk
}

func (k answered) String() string {
	text := "DoStackSnapshot: " + k.hr.String()
	if k.by != nil {
		return text + ", since " + k.by.When
	}
	if k.told.why != "" {
		return text + ", since " + k.told.why
	}
	var names []string
	for i := range min(k.told.n, maxTold) {
		name := "marker"
		if k.told.id[i] != 0 {
			name = k.name(k.told.ip[i])
		}
		names = append(names, name)
	}
	if more := k.told.n - maxTold; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if len(names) == 0 {
		return text + ", no callback"
	}
	return text + ", reported " + strings.Join(names, ", ")
}

// name is the name of the managed function at ip.
func (k *Call) name(ip uint64) string {
	if _, f := k.c.Codes.Find(ip); f != nil {
		return f.Name
	}
	return "unmanaged code"
}
