package tasks

import "encoding/binary"

// Follow is Read for the chain that begins with an object, taken from the process's memory as it is
// now. If late is true, the thread may have run since its sample. Then the object must be a pending
// task; the box of a pool, which may be in use again, makes no chain.
func (c *Callers) Follow(object uint64, late bool) {
	e := entries{to: c.reader[:0]}
	if table, body := c.load(object); table != 0 {
		r := c.role(table)
		if r.rule&(RuleStart|RuleTask) != 0 && (!late || c.pending(table, body)) {
			c.follow(&e, object, EntryStart)
		}
	}
	c.Read(e.to)
}

// Thread reads the managed Thread at address object, and returns the ids of its current Activity. After
// reading them, it calls still. If still returns false, the thread has run meanwhile, and Thread returns
// zero IDs.
func (c *Callers) Thread(object uint64, still func() bool) IDs {
	e := entries{to: c.reader[:0]}
	c.follow(&e, object, EntryThread)
	c.Read(e.to)
	// still may call Follow, which replaces c.ids.
	ids := c.ids
	if ids == (IDs{}) || !still() {
		return IDs{}
	}
	return ids
}

// entries are in the format in which the probe writes them.
type entries struct{ to []byte }

func (e *entries) add(at, what uint64) bool {
	if len(e.to)+entrySize > entrySize*maxEntries {
		return false
	}
	e.to = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(e.to, at), what)
	return true
}

const maxBody = 256 // bytes that are read of an object

// load reads the beginning of an object, and returns its MethodTable, or 0.
func (c *Callers) load(at uint64) (table uint64, body []byte) {
	b := make([]byte, maxBody)
	if at == 0 || at&7 != 0 {
		return 0, nil
	}
	if b = b[:c.mem.ReadSome(b, at)&^7]; len(b) < 8 {
		return 0, nil
	}
	return binary.LittleEndian.Uint64(b) &^ 7, b
}

// pending reports whether an object is a task that has not ended. It is false for the box of a pool.
func (c *Callers) pending(table uint64, body []byte) bool {
	t := c.shapes.types.Of(table)
	if t == nil {
		return false
	}
	sh := c.shapes.shape(t)
	return sh.flags != 0 && sh.flags+4 <= uint64(len(body)) &&
		binary.LittleEndian.Uint32(body[sh.flags:])&stateEnded == 0
}

func (c *Callers) follow(e *entries, at, kind uint64) {
	for range maxLinks {
		table, body := c.load(at)
		r := c.role(table)
		if at != 0 && !r.valid { // it is no object any more
			kind = EntryCut
		}
		if at == 0 || !e.add(at|kind, table) || !r.valid {
			return
		}
		kind = EntryNext
		from, to := r.rule.from(), min(r.rule.to(), uint64(len(body)))
		switch {
		case r.rule&RuleText != 0:
			c.copyText(e, body, from)
			c.copyText(e, body, r.rule.to())
			return
		case to < from+8:
			return
		case to == from+8:
			at = binary.LittleEndian.Uint64(body[from:])
		default:
			at = c.first(body[from:to])
		}
	}
}

// first returns the first of several words whose object may begin a chain or has text, 0 if there is
// none.
func (c *Callers) first(words []byte) uint64 {
	for ; len(words) >= 8; words = words[8:] {
		at := binary.LittleEndian.Uint64(words)
		if table, _ := c.load(at); table != 0 {
			if r := c.role(table); r.rule&(RuleStart|RuleTask|RuleText) != 0 {
				return at
			}
		}
	}
	return 0
}

// copyText copies the string to which a word of an object refers. A string that is missing or longer
// than 64 bytes becomes an empty text.
func (c *Callers) copyText(e *entries, body []byte, at uint64) {
	const length, chars, most = 8, 12, 64 // of a String; bytes that are copied
	size := uint64(0)
	var b []byte
	if at+8 <= uint64(len(body)) {
		if _, b = c.load(binary.LittleEndian.Uint64(body[at:])); len(b) > chars {
			size = 2 * uint64(binary.LittleEndian.Uint32(b[length:]))
		}
	}
	if size > most || chars+size > uint64(len(b)) {
		size = 0
	}
	room := (size + entrySize - 1) &^ (entrySize - 1)
	if uint64(len(e.to))+entrySize+room <= entrySize*maxEntries && e.add(EntryText, size) && size > 0 {
		e.to = append(append(e.to, b[chars:chars+size]...), make([]byte, room-size)...)
	}
}
