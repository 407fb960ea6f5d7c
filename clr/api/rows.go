package api

import (
	"strings"
)

// nextSlot parses a row's slot, which follows that of the row before. The first is 3, after IUnknown's.
func (p *parser) nextSlot(s string) int {
	n := p.number(s)
	if n != p.slot+1 {
		p.fail("slot %d comes after slot %d", n, p.slot)
	}
	p.slot = n
	if p.head.name == "" {
		p.fail("a row before the first interface")
	}
	return n
}

func (p *parser) info(w []string) {
	if !p.columns(w, 11, 1) {
		return
	}
	p.t.Info = append(p.t.Info,
		Info{Interface: p.head.name, Version: p.head.version, Slot: p.nextSlot(w[0]), Name: w[1],
			Gate: Gate(p.word("gate", w[2])), GC: p.word("gc", w[3]),
			Mode: p.word("mode", w[4]), Locks: p.word("locks", w[5]),
			Attach: p.yes("attach", w[6]), Notify: p.yes("notify", w[7]), Native: p.word("native", w[8]),
			Thread: p.word("thread", w[9]), Runtime: p.word("runtime", w[10]),
			own: map[Place]bool{}, skip: map[Place]string{}})
	m := &p.t.Info[len(p.t.Info)-1]
	p.sane(m)
	p.says = func(w []string) { p.infoLine(m, w) }
}

// sane checks that the columns of a method are consistent.
func (p *parser) sane(m *Info) {
	switch {
	case m.Thread == "yes" && (m.Locks == "takes" || m.GC == "triggers"):
		p.fail("%s takes locks or triggers, and is not callable with a thread suspended", m.Name)
	case m.Thread == "reader" && m.Locks != "reader":
		p.fail("%s is said to try the reader lock, its locks are %q", m.Name, m.Locks)
	case m.Gate == SyncGC && m.GC == "notrigger":
		p.fail("%s has the gate \"sync+gc\" but gc \"notrigger\"", m.Name)
	}
}

func (p *parser) infoLine(m *Info, w []string) {
	rest := strings.Join(w[1:], " ")
	switch {
	case len(w) < 2:
		p.fail("%q says nothing", w[0])
	case w[0] == "says":
		m.Says = append(m.Says, rest)
	case w[0] == "needs":
		m.Needs = p.bits(w[1:])
	case w[0] == "from" || w[0] == "until":
		m.From = append(m.From, p.change(w, "gate"))
	case w[0] == "own" && len(w) == 3 && w[2] == "refused":
		m.own[p.place(w[1])] = true
	case w[0] == "skip" && len(w) > 3 && w[1] == "all":
		for _, at := range Places() {
			m.skip[at] = strings.Join(w[2:], " ")
		}
	case w[0] == "skip" && len(w) > 3:
		m.skip[p.place(w[1])] = strings.Join(w[2:], " ")
	case w[0] == "differs" && len(w) > 3:
		m.differs = append(m.differs, difference{w[1], p.place(w[2]), strings.Join(w[3:], " ")})
	default:
		p.fail("%q is no line of a method of the info interface", strings.Join(w, " "))
	}
}

func (p *parser) place(s string) Place {
	at, err := ParsePlace(s)
	if err != nil {
		p.fail("%v", err)
	}
	return at
}

// change parses: from RELEASE COLUMN VALUE, or until.
func (p *parser) change(w []string, columns ...string) Change {
	if len(w) != 4 {
		p.fail("want: from or until RELEASE COLUMN VALUE")
		return Change{}
	}
	for _, c := range columns {
		if w[2] == c {
			return Change{p.release(w[1]), w[0] == "until", c, p.word(c, w[3])}
		}
	}
	p.fail("column %q does not change", w[2])
	return Change{}
}

// release parses MAJOR.MINOR.
func (p *parser) release(s string) Release {
	major, minor, ok := strings.Cut(s, ".")
	if !ok || len(minor) != 1 {
		p.fail("%q is no release", s)
		return 0
	}
	return Release(10*p.number(major) + p.number(minor))
}

// bits parses names of bits; + joins alternatives.
func (p *parser) bits(names []string) []string {
	for _, n := range names {
		for _, one := range strings.Split(n, "+") {
			if p.t.FindBit(one) == nil {
				p.fail("%q is no bit of bits.txt", one)
			}
		}
	}
	return names
}

func (p *parser) callback(w []string) {
	if !p.columns(w, 7, 1) {
		return
	}
	p.t.Callbacks = append(p.t.Callbacks,
		Callback{Interface: p.head.name, Version: p.head.version, Slot: p.nextSlot(w[0]), Name: w[1],
			Scope: p.word("scope", w[2]), Contract: p.word("contract", w[3]), Seen: p.word("seen", w[4]),
			Attach: p.word("gets", w[5]), Notify: p.word("gets", w[6])})
	c := &p.t.Callbacks[len(p.t.Callbacks)-1]
	if c.Never() && c.Seen != "unseen" {
		p.fail("%s is never issued, and was seen", c.Name)
	}
	p.says = func(w []string) { p.callbackLine(c, w) }
}

func (p *parser) callbackLine(c *Callback, w []string) {
	rest := strings.Join(w[1:], " ")
	switch {
	case len(w) < 2:
		p.fail("%q says nothing", w[0])
	case w[0] == "says":
		c.Says = append(c.Says, rest)
	case w[0] == "held" && c.Held == "":
		c.Held = rest
	case w[0] == "by" && c.By == nil:
		c.By = p.bits(w[1:])
	case w[0] == "from":
		c.From = append(c.From, p.change(w, "seen", "scope"))
	default:
		p.fail("%q is no line of a callback", strings.Join(w, " "))
	}
}

func (p *parser) bit(w []string) {
	if !p.columns(w, 6, 0) {
		return
	}
	p.t.Bits = append(p.t.Bits, Bit{Name: w[0], High: p.word("word", w[1]) == "high", Value: p.hex(w[2]),
		Later: p.yes("later", w[3]), Attach: p.yes("attach", w[4]), Notify: p.yes("notify", w[5])})
	b := &p.t.Bits[len(p.t.Bits)-1]
	if b.Value == 0 || b.Value&(b.Value-1) != 0 {
		p.fail("%s is not one bit: %#x", b.Name, b.Value)
	}
	p.says = func(w []string) {
		switch {
		case w[0] == "says" && len(w) > 1:
			b.Says = append(b.Says, strings.Join(w[1:], " "))
		case w[0] == "from":
			b.From = append(b.From, p.change(w, "later", "attach"))
		default:
			p.fail("%q is no line of a bit", strings.Join(w, " "))
		}
	}
}

func (p *parser) result(w []string) {
	if !p.columns(w, 2, 0) {
		return
	}
	p.t.Results = append(p.t.Results, Result{Value: p.hex(w[0]), Name: w[1]})
	r := &p.t.Results[len(p.t.Results)-1]
	p.says = func(w []string) { p.remedy(w, &r.Says, &r.Do) }
}

func (p *parser) check(w []string, to *[]Check) {
	if !p.columns(w[:1], 1, 0) {
		return
	}
	*to = append(*to, Check{Name: w[0], Aliases: w[1:]})
	c := &(*to)[len(*to)-1]
	p.says = func(w []string) { p.remedy(w, &c.Says, &c.Do) }
}

// remedy parses a line with what happens or what to do about it.
func (p *parser) remedy(w []string, says, do *string) {
	switch {
	case w[0] == "says" && *says == "":
		*says = strings.Join(w[1:], " ")
	case w[0] == "do" && *do == "":
		*do = strings.Join(w[1:], " ")
	default:
		p.fail("%q is neither what happens nor what to do", strings.Join(w, " "))
	}
}
