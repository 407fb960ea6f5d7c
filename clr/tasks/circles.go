package tasks

import "slices"

// States of chains with a circle: each task of it waits for the next one, and the last one for the first.
const (
	// Circle is the state if nothing can end the circle.
	Circle = "waits in a circle"
	// openCircle is the state if another task or a token may end a task of the circle, such as Task.WhenAny.
	openCircle = "waits in a circle that another task, a token, or a time limit may end"
)

// circles adds the chains that begin in a circle. climb has passed all tasks that wait for something outside
// of circles. Each of the other tasks follows another one of them, so going back from it ends in a circle.
func (g *graph) circles(t *tree) {
	back := map[int32]int32{}
	for i := range g.all {
		for _, to := range g.all[i].next {
			if t.place[i] == 0 && t.place[to] == 0 {
				back[to] = int32(i)
			}
		}
	}
	if len(back) == 0 {
		return
	}
	g.round = map[int32]string{}
	from := map[int32]int32{} // tasks already passed, with the one where that began
	for i := range int32(len(g.all)) {
		at := i
		_, follows := back[at]
		for ; follows && from[at] == 0; at, follows = back[at] {
			from[at] = i + 1
		}
		if follows && from[at] == i+1 && t.place[at] == 0 {
			ring := []int32{at}
			for k := back[at]; k != at; k = back[k] {
				ring = append(ring, k)
			}
			g.round[at] = g.stateOf(ring)
			g.climb(t, at, -1, at, way{})
		}
	}
}

// close ends a chain that has come back to the first task of ring.
func (g *graph) close(t *tree, first, parent int32, ring []int32) {
	if g.out.Moved {
		g.out.Changed++
		return
	}
	name := g.all[ring[0]].name()
	g.end(t, first, end{step: t.step(parent, t.id(name)), state: g.stateOf(ring)}, 0)
}

// stateOf returns the state of a chain with a circle of these tasks.
func (g *graph) stateOf(ring []int32) string {
	if slices.ContainsFunc(ring, func(i int32) bool {
		p := g.all[i]
		return p.opens() || g.tokens.ends[p.addr]
	}) {
		return openCircle
	}
	return Circle
}
