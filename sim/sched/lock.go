package sched

// Lock is a mutual exclusion lock. A Lock with only Name set is free. Names must be
// unique in a world, because states are compared by the names of locks.
type Lock struct {
	Name      string
	Recursive bool // its owner can take it again

	owner *Actor
	count int
}

// Owner returns the actor that owns l, nil if l is free. An actor that acts on the
// answer must Observe it.
func (l *Lock) Owner() *Actor { return l.owner }

// free reports whether a could take l now.
func (l *Lock) free(a *Actor) bool {
	return l.owner == nil || l.Recursive && l.owner == a
}

// Lock takes l and waits while it is owned, even by a itself if the lock is not
// recursive. An actor that ends or is suspended keeps its locks.
func (a *Actor) Lock(l *Lock) {
	a.point(operation{kind: KindLock, what: l.Name, lock: l})
	a.acquire(l)
	a.done("lock ", l.Name)
}

// TryLock takes l if it is free now, and reports whether it did.
func (a *Actor) TryLock(l *Lock) bool {
	a.point(operation{kind: KindTryLock, what: l.Name, lock: l})
	if !l.free(a) {
		a.Observe(0)
		a.done("try lock ", l.Name, ": no, ", l.owner.name, " has it")
		return false
	}
	a.Observe(1)
	a.acquire(l)
	a.done("try lock ", l.Name, ": got it")
	return true
}

// Unlock releases l, or one of several holds of a recursive lock. It is a fault if
// a does not own l.
func (a *Actor) Unlock(l *Lock) {
	a.point(operation{kind: KindUnlock, what: l.Name, lock: l})
	if l.owner != a {
		a.Fault("unlocks %s, which it does not own", l.Name)
	}
	a.held -= lockHash(l)
	if l.count--; l.count == 0 {
		l.owner = nil
	}
	a.done("unlock ", l.Name)
}

func (a *Actor) acquire(l *Lock) {
	l.owner = a
	l.count++
	a.held += lockHash(l)
}

// lockHash returns a hash that is summed over the locks of an actor, so their order does not count.
func lockHash(l *Lock) uint64 { return mix(hashStart, hashString(l.Name)) }
