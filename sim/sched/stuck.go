package sched

import "slices"

// Waitee is what an actor can wait for: an *Actor, a *Lock or a *Group.
type Waitee interface {
	// alive reports whether an actor that can still move could end the wait.
	alive(w *World) bool
	// actors calls f with everybody it depends on.
	actors(f func(*Actor))
}

// Group is several things waited for: any one of them is enough, or with All
// each is needed, as when a collector waits for all threads.
type Group struct {
	Name    string
	All     bool
	Members func() []Waitee // called each time; an empty list means any actor
}

func (a *Actor) alive(*World) bool     { return !a.dead && !a.ended }
func (a *Actor) actors(f func(*Actor)) { f(a) }

func (l *Lock) alive(w *World) bool { return l.owner == nil || l.owner.alive(w) }
func (l *Lock) actors(f func(*Actor)) {
	if l.owner != nil {
		f(l.owner)
	}
}

func (g *Group) alive(w *World) bool { return aliveOf(w, g.Members(), g.All) }
func (g *Group) actors(f func(*Actor)) {
	for _, m := range g.Members() {
		m.actors(f)
	}
}

// aliveOf reports whether a wait for on can still end. Of all, those that ended
// have done their part.
func aliveOf(w *World, on []Waitee, all bool) bool {
	if len(on) == 0 {
		return w.anyAlive()
	}
	found := false
	for _, m := range on {
		if a, ok := m.(*Actor); ok && a.ended {
			continue
		}
		alive := m.alive(w)
		if all && !alive {
			return false
		}
		found = found || alive
	}
	return found
}

func (w *World) anyAlive() bool {
	return slices.ContainsFunc(w.actors, func(a *Actor) bool { return a.alive(w) })
}

// stuck finds the actors that can never move again, and reports whether one of
// them is no daemon. It assumes the worst of all who cannot move now and takes
// back whoever could be freed by one who can, until nothing changes: the
// greatest set whose members wait for each other only.
func (w *World) stuck() bool {
	for _, a := range w.actors {
		a.dead = !a.ended && !a.can && !a.sig
	}
	for changed := true; changed; {
		changed = false
		for _, a := range w.actors {
			if a.dead && a.freeable() {
				a.dead, changed = false, true
			}
		}
	}
	return slices.ContainsFunc(w.actors, func(a *Actor) bool { return a.dead && !a.daemon })
}

// freeable reports whether everything that holds a up could be ended by actors
// that can move.
func (a *Actor) freeable() bool {
	if a.stopped && !a.resumable() {
		return false
	}
	switch a.op.kind {
	case KindLock:
		return a.op.lock.free(a) || a.op.lock.alive(a.w)
	case KindWait:
		return a.ready() || aliveOf(a.w, a.op.on, false)
	}
	return true
}

// resumable reports whether every suspension of a could be taken back: by the one
// who made it, or by a watchdog. Who suspends itself waits for anybody.
func (a *Actor) resumable() bool {
	for _, o := range a.w.actors {
		if o.rescuer && o.alive(a.w) {
			return true
		}
	}
	for _, id := range a.suspenders {
		if id == a.id {
			if !a.w.anyAlive() {
				return false
			}
		} else if !a.w.actors[id].alive(a.w) {
			return false
		}
	}
	return true
}
