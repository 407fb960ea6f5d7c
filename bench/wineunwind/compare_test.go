package wineunwind

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/pevec"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
)

// how is the source of an answer, numbered as in the harness.
type how uint32

const (
	entry   how = iota // the exception directory has an entry
	leaf               // it has none
	refused            // no answer: memory that is not there, bad unwind data
)

const allKnown = context.AMD64All

// answer is the result of one step.
type answer struct {
	how     how
	begin   uint32 // RVA at which the entry begins
	regs    context.AMD64
	frame   uint64 // EstablisherFrame
	handler uint64 // RVA, 0 = none

	stop   unwind.Stop // ours, if refused
	reason peamd64.Reason
	part   amd64.PEPart
	fault  bool // the caller was interrupted: a machine frame
}

// difference names the first nonvolatile register, or RIP, in which a is not b.
func difference(a, b *context.AMD64) string {
	return pevec.DiffAMD64(a, b, pevec.WindowsAMD64)
}

// differ describes how our answer differs from Wine's, "" if it does not. If Wine faults, our walker must
// have met unreadable memory, too.
func differ(ours, wine *answer) string {
	if wine.how == refused {
		if ours.stop == unwind.Unreadable ||
			ours.how != refused && ours.regs.Known&pevec.WindowsAMD64 != pevec.WindowsAMD64 {
			return ""
		}
		return fmt.Sprintf("we give an answer (%v, %v), Wine faults", ours.stop, ours.reason)
	}
	switch {
	case ours.how == refused:
		return fmt.Sprintf("we refuse with %v, %v", ours.stop, ours.reason)
	case ours.how != wine.how:
		return fmt.Sprintf("found %d, want %d (0 an entry, 1 none)", ours.how, wine.how)
	case ours.begin != wine.begin:
		return fmt.Sprintf("entry begins at %#x, want %#x", ours.begin, wine.begin)
	}
	if d := difference(&ours.regs, &wine.regs); d != "" {
		return d
	}
	switch {
	case ours.frame != wine.frame:
		return fmt.Sprintf("frame %#x, want %#x", ours.frame, wine.frame)
	case ours.handler != wine.handler:
		return fmt.Sprintf("handler %#x, want %#x", ours.handler, wine.handler)
	}
	return ""
}

// tally counts points.
type tally struct {
	points, agreed, unexplained int
	loops                       int // not asked: Wine would loop
	explained                   map[string]int
	covered                     [len(covers)]int
}

// covers are the kinds of points. A point may be of several kinds.
var covers = [...]string{"prolog", "body", "epilog", "no entry", "chained", "version 2", "frame register",
	"machine frame", "handler", "refused"}

// cover counts a point for each of its kinds.
func (s *tally) cover(f *pe.File, p *point, a *answer) {
	s.points++
	fn, _ := f.AMD64().Find(p.rva)
	info, _ := f.AMD64().Info(fn.Unwind)
	in := a.how == entry && a.part == amd64.PECode
	early := p.rva-fn.Begin < uint32(info.Prolog)
	for i, yes := range [len(covers)]bool{
		in && early, in && !early, a.part == amd64.PEEpilog, a.how == leaf, a.how == entry && info.Chained(),
		a.how == entry && info.Version == 2, a.how == entry && info.FrameReg != 0, a.fault,
		a.handler != 0, a.how == refused,
	} {
		if yes {
			s.covered[i]++
		}
	}
}

func (s *tally) add(o *tally) {
	s.points += o.points
	s.agreed += o.agreed
	s.unexplained += o.unexplained
	s.loops += o.loops
	if s.explained == nil {
		s.explained = map[string]int{}
	}
	for name, n := range o.explained {
		s.explained[name] += n
	}
	for i, n := range o.covered {
		s.covered[i] += n
	}
}

func (s *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d points, %d agreed, %d unexplained", s.points, s.agreed, s.unexplained)
	for _, name := range slices.Sorted(maps.Keys(s.explained)) {
		fmt.Fprintf(&b, "; %d %s", s.explained[name], name)
	}
	if s.loops != 0 {
		fmt.Fprintf(&b, "; %d not asked (Wine would loop)", s.loops)
	}
	b.WriteString("; asked for:")
	for i, n := range s.covered {
		fmt.Fprintf(&b, " %s %d", covers[i], n)
	}
	return b.String()
}
