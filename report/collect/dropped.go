package collect

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/wire"
)

// Events that found no room left their type, count, and bytes, but no stack. Their weight is spread over the
// recorded stacks of the same type, in proportion. So each type has its exact total, and the places within
// the type are estimates: the error of each is at most the dropped weight.

// Limits and names of dropped events.
const (
	maxDrops    = 1 << 12 // types
	listedDrops = 4       // types in the note
	otherTypes  = "(other types)"
	gapDropped  = "event-dropped" // no stack of this type was recorded
)

// dropKey is a kind of event and the name of a type, cut as a wire.Dropped has it.
type dropKey struct {
	kind uint8
	name string
}

func dropKeyOf(kind uint8, name string) dropKey {
	units := 0
	for i, r := range name {
		if units++; r > 0xffff {
			units++
		}
		if units > wire.MaxDroppedName {
			return dropKey{kind, name[:i]}
		}
	}
	return dropKey{kind, name}
}

// drop keeps the newest totals of a type.
func (p *Process) drop(m *wire.Dropped) {
	if m.Kind != wire.EventAllocation && m.Kind != wire.EventException {
		return
	}
	if p.drops == nil {
		p.drops = map[dropKey]*wire.Dropped{}
	}
	key := dropKeyOf(m.Kind, m.Name)
	if _, ok := p.drops[key]; !ok && len(p.drops) >= maxDrops {
		return // no probe has as many places
	}
	p.drops[key] = &wire.Dropped{Kind: m.Kind, Name: m.Name, Count: min(m.Count, maxNanos),
		Bytes: min(m.Bytes, maxNanos)}
}

// addDropped adds the dropped events of a process to its stacks. first is its first stack.
func (b *builder) addDropped(p *Process, first int) {
	if len(p.drops) == 0 {
		return
	}
	recorded := map[dropKey][]int32{}
	for i := range p.stacks {
		if s := &p.stacks[i]; s.event == wire.EventAllocation || s.event == wire.EventException {
			key := dropKeyOf(s.event, s.name)
			recorded[key] = append(recorded[key], int32(first+i))
		}
	}
	all := make([]*wire.Dropped, 0, len(p.drops))
	for key, d := range p.drops {
		all = append(all, d)
		if to := recorded[key]; len(to) > 0 {
			spread(b.p.Stacks, to, d)
		} else if d.Count > 0 {
			b.withoutStack(d)
		}
	}
	b.p.Stats.Notes = append(b.p.Stats.Notes, dropNote(p.PID, all))
}

// spread adds the weight of d to stacks, in proportion to their own.
func spread(stacks []export.Stack, to []int32, d *wire.Dropped) {
	var count, sum apportion
	for _, i := range to {
		count.of, sum.of = count.of+uint64(stacks[i].Count), sum.of+uint64(stacks[i].Sum)
	}
	count.add, sum.add = d.Count, d.Bytes
	for _, i := range to {
		s := &stacks[i]
		s.Count, s.Sum = s.Count+int64(count.share(uint64(s.Count))), s.Sum+int64(sum.share(uint64(s.Sum)))
	}
}

// apportion divides add into whole shares of parts that sum up to of. The shares sum up to add.
type apportion struct{ of, add, seen, given uint64 }

func (a *apportion) share(part uint64) uint64 {
	if a.of == 0 {
		return 0
	}
	a.seen += part
	high, low := bits.Mul64(a.add, min(a.seen, a.of))
	until, _ := bits.Div64(high, low, a.of) // at most add, since seen <= of
	n := until - a.given
	a.given = until
	return n
}

// withoutStack adds a stack without frames for a type without a recorded stack.
func (b *builder) withoutStack(d *wire.Dropped) {
	name := d.Name
	if name == "" {
		name = otherTypes
	}
	b.p.Threads = append(b.p.Threads, export.Thread{Name: "(events without a stack)"})
	b.p.Stacks = append(b.p.Stacks,
		export.Stack{Thread: len(b.p.Threads) - 1, Frames: slices.Clone(b.root),
			Count: int64(d.Count), Sum: int64(d.Bytes),
			Gap: gapDropped, Event: exported[d.Kind], Type: name})
}

// dropNote reports which values are estimates, and the bounds of the error.
func dropNote(pid int, all []*wire.Dropped) string {
	slices.SortFunc(all, func(x, y *wire.Dropped) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes),
			cmp.Compare(y.Count, x.Count), cmp.Compare(x.Name, y.Name))
	})
	total := int64(0)
	var bounds []string
	for i, d := range all {
		total += int64(d.Count)
		if i >= listedDrops {
			continue
		}
		name := d.Name
		if name == "" {
			name = otherTypes
		}
		amount := counted(int64(d.Count), "event")
		if d.Kind == wire.EventAllocation {
			amount = fmt.Sprintf("%.1f MB", float64(d.Bytes)/1e6)
		}
		bounds = append(bounds, name+" "+amount)
	}
	line := fmt.Sprintf("process %d: the stacks of %s were dropped, because the ring buffer was full. The totals by type are complete. Places are estimated and can be off by at most: %s",
		pid, counted(total, "event"), strings.Join(bounds, ", "))
	if more := len(all) - len(bounds); more > 0 {
		line += fmt.Sprintf(", and %s more", counted(int64(more), "type"))
	}
	return line
}

// sampledNote bounds the error of the bytes of each type where the runtime chooses objects at random
// (.NET 10): with n of them, the sum is off by at most 3/sqrt(n) in 997 of 1,000 cases.
func (b *builder) sampledNote(p *Process, first int) {
	if p.counters[wire.StatEngine+"event_alloc_sampled"] == 0 {
		return
	}
	counts, sums := map[string]int64{}, map[string]int64{}
	for i := range b.p.Stacks[first:] {
		if s := &b.p.Stacks[first+i]; s.Event == export.EventAllocation {
			counts[s.Type] += s.Count
			sums[s.Type] += s.Sum
		}
	}
	types := slices.SortedFunc(maps.Keys(counts),
		func(x, y string) int { return cmp.Or(cmp.Compare(sums[y], sums[x]), cmp.Compare(x, y)) })
	var bounds []string
	for _, name := range types[:min(len(types), listedDrops)] {
		bounds = append(bounds, fmt.Sprintf("%s %.0f %%", name,
			math.Ceil(300/math.Sqrt(float64(max(1, counts[name]))))))
	}
	if bounds != nil {
		b.p.Stats.Notes = append(b.p.Stats.Notes,
			fmt.Sprintf("process %d: this runtime samples allocations at random. The bytes of a type can be off by at most (997 of 1,000 times): %s", p.PID, strings.Join(bounds, ", ")))
	}
}
