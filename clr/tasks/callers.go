package tasks

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/naming"
	"github.com/seedwalk/seedwalk/clr/objects"
)

// Rule describes how a chain continues from an object of a type. Bits 0 to 15 and 16 to 31 are the start and
// end of a range of offsets in the object. If the range holds one word, the chain continues with the object
// at that word. If it holds several, it continues with the first of these objects whose own rule has
// RuleStart, RuleTask, or RuleText. The probe of package sample/probe follows chains by these rules at the
// moment of a sample.
type Rule uint64

// Flags of a Rule.
const (
	RuleKnown Rule = 1 << 32 // the type has been learned, also if no chain continues from it
	RuleStart Rule = 2 << 32 // an object of the type may begin a chain
	RuleText  Rule = 4 << 32 // the words at both offsets refer to strings
	RuleTask  Rule = 8 << 32 // the type is a task of no async method, which may begin a chain
	// RuleFrame marks the rule of a return address into a frame that holds a first object. The numbers of
	// the range then count the words on the stack that may be the object: below the return address, and
	// from it upwards.
	RuleFrame Rule = 16 << 32
)

func (r Rule) from() uint64 { return uint64(r & 0xffff) }
func (r Rule) to() uint64   { return uint64(r >> 16 & 0xffff) }

// words returns the rule for a range of words. Words beyond the bytes that are read are cut off.
func words(from, to uint64) Rule {
	const most = 256 // bytes of an object that are read
	return Rule(min(from, most) | min(to, most)<<16)
}

// word returns the rule for one word.
func word(at uint64, ok bool) Rule {
	if !ok {
		return 0
	}
	return words(at, at+8)
}

// The kind of an entry: the low bits of its first word, whose other bits are an object's address. The second
// word is the object's MethodTable, whose low bits are the number of the chain; for a text it is the size in
// bytes of the text, which follows.
const (
	EntryStart  = 1 // begins a chain
	EntryNext   = 2 // resumes when the previous entry ends
	EntryNovel  = 3 // its type has no rule yet
	EntryThread = 4 // the managed Thread, followed by its context
	EntryText   = 5
	EntryCut    = 6 // like EntryNext, but its type had no rule: the chain may continue
	EntryMoved  = 7 // the only entry: a collection moved objects
	EntryChains = 8 // chains of one sample, whose entries alternate
)

const (
	entrySize  = 16
	maxEntries = 64
	maxLinks   = 40 // entries of one chain
)

// Caller is an async operation that waits for another one.
type Caller struct {
	Table        uint64 // MethodTable
	Name, Module string
	Box          bool // of an async method
}

// role is the role of a type's objects in chains.
type role struct {
	Caller
	kind  kind
	rule  Rule
	valid bool // the MethodTable is one
}

// Callers finds the chains of async methods that wait for the work of a thread. It learns types when it meets
// them. It is not safe for concurrent use.
type Callers struct {
	mem    objects.Reader
	shapes shapes
	roles  map[uint64]*role
	learnt func(table, rule uint64) bool
	reader [entrySize * maxEntries]byte

	// Results of the last Read.
	chains [EntryChains]chain
	ids    IDs
	Moved  bool // a collection moved objects
	New    bool // a type had no rule yet
}

// chain is the object at which a chain begins, the types of its objects, and the objects after the first.
type chain struct {
	at    uint64
	links []*role
	waits []uint64
	cut   bool
}

// IDs are the ids of the thread's current Activity, or zero.
type IDs struct {
	Trace [16]byte
	Span  [8]byte
}

// NewCallers returns Callers for a runtime. learnt receives the rule of each new type, with RuleKnown.
// The error is a *contract.Error.
func NewCallers(mem objects.Reader, tables *contract.Tables, names *naming.Names,
	learnt func(table, rule uint64) bool) (*Callers, error) {
	types, err := objects.NewTypes(mem, tables.Descriptor(), names)
	if err != nil {
		return nil, err
	}
	return &Callers{mem: mem, shapes: shapes{names: names, types: types, of: map[*objects.Type]*shape{}},
		roles: map[uint64]*role{}, learnt: learnt}, nil
}

// maxRoles bounds the types that are remembered.
const maxRoles = 1 << 16

// role returns the role of a type's objects in chains. It learns a new type and sets New.
func (c *Callers) role(table uint64) *role {
	if r, ok := c.roles[table]; ok {
		return r
	}
	if len(c.roles) >= maxRoles {
		clear(c.roles)
	}
	c.New = true
	r := &role{}
	if t := c.shapes.types.Of(table); t != nil {
		r = c.classify(t)
		c.learnt(table, uint64(r.rule|RuleKnown))
	}
	c.roles[table] = r
	return r
}

// fieldRules are types that lead to the next object through one field.
var fieldRules = map[string]string{
	"System.Threading.Thread":                                            "_executionContext",
	"System.Threading.ExecutionContext":                                  "m_localValues",
	"System.Threading.AsyncLocalValueMap+MultiElementAsyncLocalValueMap": "_keyValues",
	"System.Threading.AsyncLocalValueMap+ManyElementAsyncLocalValueMap":  "_entries",
}

func (c *Callers) classify(t *objects.Type) *role {
	sh := c.shapes.shape(t)
	r := &role{kind: sh.kind, valid: true}
	switch {
	case sh.kind == box && sh.valid:
		r.Caller = Caller{t.Table, sh.name, c.shapes.module(t), true}
		r.rule = c.boxRule(t, sh) | RuleStart
	case (sh.kind == task || sh.kind == combined || sh.kind == oneWay) && sh.valid:
		r.Caller = Caller{t.Table, sh.name, t.Module, false}
		r.rule = word(sh.next, true) | RuleTask
	case sh.valid && sh.next != 0: // a wrapper, an action, a list
		r.rule = word(sh.next, true)
	case t.Is("System.Diagnostics.Activity"):
		trace, ok := t.Field("_traceId")
		span, ok1 := t.Field("_spanId")
		if ok && ok1 {
			r.rule = words(trace, span) | RuleText
		}
	case fieldRules[t.Name] != "":
		r.rule = word(t.Field(fieldRules[t.Name]))
	case strings.HasPrefix(t.Name, "System.Threading.AsyncLocalValueMap+"):
		r.rule = words(objectHeader, t.Size())
	case t.Name == "": // an array: of continuations, or of pairs
		const first = 16 // offset of an array's first item
		switch size := t.ItemSize(); {
		case size == 8:
			r.rule = words(first, first+8)
		case size > 8 && size <= 32:
			r.rule = words(first, 256)
		}
	default:
		if s := promise(t); s.To > s.From {
			r.rule = words(s.From, s.To)
		}
	}
	return r
}

// promise returns the field of an async iterator, or of a pooled box, that holds its awaiter; zero if
// there is none.
func promise(t *objects.Type) (s objects.Span) {
	for ; t != nil && s.To == 0; t = t.Parent {
		for _, s = range t.Spans(func(name string) bool {
			return name == "_valueTaskSource" ||
				name == "<>v__promiseOfValueOrEnd"
		}) {
			break
		}
	}
	return s
}

// boxRule returns the rule for the continuation of a box: its own, that of its pooled source, or that of the
// iterator that is its state machine.
func (c *Callers) boxRule(t *objects.Type, sh *shape) Rule {
	if sh.flags == 0 {
		s := promise(t)
		return words(s.From, s.To)
	}
	if machine := c.shapes.types.Of(c.shapes.machineTable(t)); sh.class && machine != nil &&
		promise(machine).To != 0 {
		return word(sh.state, true)
	}
	return word(sh.next, true)
}

// module returns the assembly of a box's method.
func (s *shapes) module(t *objects.Type) string {
	def, _ := s.names.TypeDef(s.machineTable(t))
	return def.Module
}

// Read parses the entries of a sample. It learns types without a role.
func (c *Callers) Read(entries []byte) {
	c.ids, c.Moved, c.New = IDs{}, false, false
	full := len(entries) >= entrySize*maxEntries &&
		binary.LittleEndian.Uint64(entries[entrySize*(maxEntries-1):]) != 0
	for i := range c.chains {
		c.chains[i] = chain{0, c.chains[i].links[:0], c.chains[i].waits[:0], full}
	}
	texts := 0
	for len(entries) >= entrySize {
		at, what := binary.LittleEndian.Uint64(entries), binary.LittleEndian.Uint64(entries[8:])
		entries = entries[entrySize:]
		if at&7 == EntryText {
			size := min(what, uint64(len(entries)))
			c.text(texts, entries[:size])
			texts++
			entries = entries[min((size+entrySize-1)&^(entrySize-1), uint64(len(entries))):]
			continue
		}
		if at != 0 {
			c.entry(&c.chains[what%EntryChains], at, c.role(what&^(EntryChains-1)), full)
		}
	}
}

// entry adds an entry to its chain.
func (c *Callers) entry(to *chain, at uint64, r *role, full bool) {
	switch begun := to.at != 0; {
	case at&7 == EntryMoved:
		c.Moved = true
		return
	case at&7 == EntryStart, at&7 == EntryThread:
		to.at, to.links, to.waits = at&^7, append(to.links[:0], r), to.waits[:0]
	case at&7 == EntryNext && begun, at&7 == EntryCut && begun && (r.rule != 0 || !r.valid):
		to.links, to.waits = append(to.links, r), append(to.waits, at&^7)
	default:
		return
	}
	to.cut = full || at&7 == EntryCut || len(to.links) >= maxLinks || r.kind >= action
}

// text handles the text of an Activity: first the trace's id, then the span's.
func (c *Callers) text(i int, utf16 []byte) {
	switch i {
	case 0:
		unhex(c.ids.Trace[:], utf16)
	case 1:
		unhex(c.ids.Span[:], utf16)
	}
}

// unhex parses lower-case hexadecimal digits in UTF-16. For any other text, to, which was zero, stays
// zero.
func unhex(to, from []byte) {
	if len(from) != 4*len(to) {
		return
	}
	for i := range 2 * len(to) {
		d := strings.IndexByte("0123456789abcdef", from[2*i])
		if d < 0 || from[2*i+1] != 0 {
			clear(to)
			return
		}
		to[i/2] = to[i/2]<<4 | byte(d)
	}
}

// IDs returns the ids of the current Activity in the last Read.
func (c *Callers) IDs() IDs { return c.ids }

// Waits reports whether an object is in a chain of the last Read and does not begin it. Such an object awaits
// something, and does not run.
func (c *Callers) Waits(object uint64) bool {
	return slices.ContainsFunc(c.chains[:], func(s chain) bool { return slices.Contains(s.waits, object) })
}

// Chain returns the work of an object and appends its waiters to the given ones: the first waits for the
// object, each other one for the one before it. ok is false if the last Read has no chain with a name that
// begins with the object. cut means that the chain may be longer.
func (c *Callers) Chain(object uint64, to []Caller) (runs Caller, callers []Caller, cut, ok bool) {
	for i := range c.chains {
		s := &c.chains[i]
		if s.at != object || len(s.links) == 0 || s.links[0].Name == "" {
			continue
		}
		for _, r := range s.links[1:] {
			if r.Name != "" {
				to = append(to, r.Caller)
			}
		}
		return s.links[0].Caller, to, s.cut, true
	}
	return Caller{}, to, false, false
}
