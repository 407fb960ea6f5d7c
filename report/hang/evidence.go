package hang

import (
	"fmt"
	"slices"
	"strings"
)

// Most things that one line of evidence lists.
const (
	shownThreads = 4
	shownChains  = 3
)

// who names a thread.
func (j *judge) who(tid uint32) string {
	if t := j.by[tid]; t != nil && t.Name != "" {
		return fmt.Sprintf("thread %d %q", tid, t.Name)
	}
	return fmt.Sprintf("thread %d", tid)
}

// list returns a line for each thread, or one line for several threads that have the same name and do the
// same. The text that does returns begins with a verb, such as "waits".
func (j *judge) list(tids []uint32, does func(*Thread) string) (lines []string) {
	type key struct{ name, does string }
	var order []key
	same := map[key][]uint32{}
	for _, tid := range tids {
		t := j.by[tid]
		k := key{t.Name, does(t)}
		if same[k] == nil {
			order = append(order, k)
		}
		same[k] = append(same[k], tid)
	}
	for _, k := range order {
		if all := same[k]; len(all) == 1 {
			lines = append(lines, j.who(all[0])+" "+k.does)
		} else {
			lines = append(lines, severalDo(all, k.name, k.does))
		}
	}
	return lines
}

// severalDo returns a line for several threads.
func severalDo(tids []uint32, name, does string) string {
	if name != "" {
		name = fmt.Sprintf(" %q", name)
	}
	verb, rest, _ := strings.Cut(does, "s")
	ids := strings.Trim(fmt.Sprint(tids[:min(len(tids), shownThreads)]), "[]")
	ids = strings.ReplaceAll(ids, " ", ", ")
	if len(tids) > shownThreads {
		ids += ", ..."
	}
	return fmt.Sprintf("%d threads%s (%s) %s%s", len(tids), name, ids, verb, rest)
}

// does returns what a thread waits for and where, or that it runs.
func (j *judge) does(t *Thread) string {
	at := ""
	if place := t.Place(); place != "" {
		at = ", in " + place
	}
	if l := t.Lock; l.Ended {
		owner := "a thread"
		if l.Owner != 0 {
			owner = fmt.Sprintf("thread %d", l.Owner)
		}
		return fmt.Sprintf("waits for the %s, which %s held when it ended%s", &l, owner, at)
	} else if l.Kind != "" && l.Owner != 0 {
		verb := "holds"
		if l.Kind == StaticConstructor {
			verb = "runs"
		}
		return fmt.Sprintf("waits for the %s, which %s %s%s", &l, j.who(l.Owner), verb, at)
	}
	w, by := t.Wait()
	if t.Joins != 0 {
		return fmt.Sprintf("waits for the end of %s%s", j.who(t.Joins), at)
	}
	// A thread that crashed waits for the createdump that it has started.
	if t.Signal != "" && (w == NoWait || w == Child) {
		return "received " + t.Signal + at
	}
	if w == NoWait {
		return "runs" + at
	}
	if by != "" && by != t.Place() {
		at = " (" + by + ")" + at
	}
	if chains := j.p.chains(t.TID); len(chains) > 0 {
		at += ": " + chainTexts(chains)
	}
	for i := range t.Awaits[:min(len(t.Awaits), shownChains)] {
		a := &t.Awaits[i]
		at += fmt.Sprintf("; %s runs %s at %s", j.who(a.Runner), a.Task, a.At)
	}
	return fmt.Sprintf("waits for %s%s", w, at)
}

// chains returns the chains for which a thread waits.
func (p *Process) chains(tid uint32) (out []*Chain) {
	for i := range p.Chains {
		if slices.Contains(p.Chains[i].Blocked, tid) {
			out = append(out, &p.Chains[i])
		}
	}
	return out
}

// chainTexts describes the chains for which a thread waits, and counts those beyond shownChains.
func chainTexts(chains []*Chain) string {
	var parts []string
	for _, c := range chains[:min(len(chains), shownChains)] {
		text := c.String()
		if c.Count > 1 && len(c.Blocked) == 1 {
			text = fmt.Sprintf("%d times %s", c.Count, text)
		}
		parts = append(parts, text)
	}
	if n := len(chains) - shownChains; n > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(parts, "; ")
}

func (c *Chain) String() string {
	text := strings.Join(Fold(c.Names), " <- ")
	switch {
	case c.Queued:
		text += " (queued in the thread pool)"
	case c.Circle:
		text += " (waits in a circle)"
	}
	return text
}
