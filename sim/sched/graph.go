package sched

import (
	"fmt"
	"strings"
)

// Graph is the wait-for graph of actors that can never move again.
type Graph struct {
	Nodes []Node // those of the cycle first, in its order
	Edges []Edge
	Cycle int // Nodes[:Cycle] wait for each other in a ring; 0 if there is no ring
}

// Node is an actor or a lock.
type Node struct {
	Name  string
	Lock  bool
	State string   // of an actor: the point at which it waits
	Stack []string // result of Actor.Where
}

// Edge means that From cannot continue without To.
type Edge struct {
	From, To int
	Text     string // "waits for", "held by", "suspended by" ...
}

// CycleNames returns the names on the cycle in its order. It returns nil without a cycle, for
// example when an actor waits for one that has ended.
func (g *Graph) CycleNames() []string {
	var names []string
	for _, n := range g.Nodes[:g.Cycle] {
		names = append(names, n.Name)
	}
	return names
}

// InCycle reports whether edge i is part of the cycle.
func (g *Graph) InCycle(i int) bool {
	e := g.Edges[i]
	return e.From < g.Cycle && e.To == (e.From+1)%g.Cycle
}

// Text prints the graph, one line per edge.
func (g *Graph) Text() string {
	var b strings.Builder
	if g.Cycle > 0 {
		names := g.CycleNames()
		fmt.Fprintf(&b, "cycle: %s -> %s\n", strings.Join(names, " -> "), names[0])
	} else {
		b.WriteString("no cycle: an actor waits for a step that no actor can take any more\n")
	}
	for i, n := range g.Nodes {
		if n.Lock {
			fmt.Fprintf(&b, "%s (lock)\n", n.Name)
		} else {
			fmt.Fprintf(&b, "%s\n  at: %s\n", n.Name, n.State)
		}
		for _, e := range g.Edges {
			if e.From == i {
				fmt.Fprintf(&b, "  %s %s\n", e.Text, g.Nodes[e.To].Name)
			}
		}
		for _, f := range n.Stack {
			fmt.Fprintf(&b, "    %s\n", f)
		}
	}
	return b.String()
}

// DOT returns the graph in Graphviz's language.
func (g *Graph) DOT() string {
	var b strings.Builder
	b.WriteString("digraph deadlock {\n\tnode [fontname=monospace];\n\tedge [fontname=monospace];\n")
	for i, n := range g.Nodes {
		shape := "box"
		if n.Lock {
			shape = "ellipse"
		}
		color := ""
		if i < g.Cycle {
			color = " color=red"
		}
		fmt.Fprintf(&b, "\tn%d [shape=%s%s label=%s];\n", i, shape, color, dotQuote(n.lines()))
	}
	for i, e := range g.Edges {
		color := ""
		if g.InCycle(i) {
			color = " color=red"
		}
		fmt.Fprintf(&b, "\tn%d -> n%d [label=%s%s];\n", e.From, e.To, dotQuote([]string{e.Text}), color)
	}
	b.WriteString("}\n")
	return b.String()
}

// dotQuote makes a quoted string of lines; \l ends a line and sets it left.
func dotQuote(lines []string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ")
	end := ""
	if len(lines) > 1 {
		end = `\l`
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(escape.Replace(l) + end)
	}
	return `"` + b.String() + `"`
}

// maxFrames bounds the frames of a stack in a picture. The text has all frames.
const maxFrames = 8

// lines returns the text in the node's box of a picture.
func (n Node) lines() []string {
	if n.Lock {
		return []string{n.Name}
	}
	out := []string{n.Name, "at: " + n.State}
	for i, f := range n.Stack {
		if i == maxFrames {
			return append(out, fmt.Sprintf("  ... %d more", len(n.Stack)-i))
		}
		out = append(out, "  "+f)
	}
	return out
}

// builder collects the graph of all actors and locks on which stuck actors depend.
type builder struct {
	g      Graph
	actors map[*Actor]int
	locks  map[*Lock]int
	todo   []*Actor
}

// graph returns the graph of a deadlock. The world calls it after stuck, which marks the dead actors.
func (w *World) graph() *Graph {
	b := &builder{actors: map[*Actor]int{}, locks: map[*Lock]int{}}
	for _, a := range w.actors {
		if a.dead {
			b.actor(a)
		}
	}
	for len(b.todo) > 0 {
		a := b.todo[0]
		b.todo = b.todo[1:]
		if a.dead {
			b.edges(a)
		}
	}
	b.g.cycleFirst()
	return &b.g
}

func (b *builder) actor(a *Actor) int {
	i, ok := b.actors[a]
	if !ok {
		i = len(b.g.Nodes)
		b.actors[a] = i
		b.g.Nodes = append(b.g.Nodes, Node{Name: a.name, State: a.standsAt(), Stack: a.where()})
		b.todo = append(b.todo, a)
	}
	return i
}

func (b *builder) lock(l *Lock) int {
	i, ok := b.locks[l]
	if !ok {
		i = len(b.g.Nodes)
		b.locks[l] = i
		b.g.Nodes = append(b.g.Nodes, Node{Name: l.Name, Lock: true})
		if l.owner != nil {
			b.edge(i, b.actor(l.owner), "held by")
		}
	}
	return i
}

func (b *builder) edge(from, to int, text string) {
	b.g.Edges = append(b.g.Edges, Edge{from, to, text})
}

func (b *builder) edges(a *Actor) {
	from := b.actor(a)
	if a.stopped {
		for i, id := range a.suspenders {
			if i == 0 || a.suspenders[i-1] != id {
				b.edge(from, b.actor(a.w.actors[id]), "suspended by")
			}
		}
	}
	if a.ready() {
		return
	}
	switch a.op.kind {
	case KindLock:
		b.edge(from, b.lock(a.op.lock), "waits for")
	case KindWait:
		for _, on := range a.op.on {
			b.waits(from, on, "waits for")
		}
	}
}

// waits draws an edge to on, or to each member of a group, to a bounded depth.
func (b *builder) waits(from int, on Waitee, text string) {
	switch on := on.(type) {
	case *Actor:
		b.edge(from, b.actor(on), text)
	case *Lock:
		b.edge(from, b.lock(on), text)
	case *Group:
		how, members := "any of ", on.Members()
		switch {
		case len(members) == 1:
			how = ""
		case on.All:
			how = "all of "
		}
		for _, m := range members {
			if a, ok := m.(*Actor); ok && a.ended && on.All {
				continue // it has done its part
			}
			if _, nested := m.(*Group); !nested {
				b.waits(from, m, fmt.Sprintf("waits for %s%s,", how, on.Name))
			} else {
				m.actors(func(a *Actor) { b.edge(from, b.actor(a), "waits for "+on.Name+",") })
			}
		}
	}
}

func (a *Actor) standsAt() string {
	switch {
	case a.ended:
		return "its end"
	case a.inHandler:
		return a.waitsFor() + " (in a signal handler)"
	}
	return a.waitsFor()
}

// where calls Actor.Where, which belongs to the user and may panic.
func (a *Actor) where() (frames []string) {
	if a.Where == nil || a.ended {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			frames = []string{fmt.Sprint("Where: panic: ", p)}
		}
	}()
	return a.Where()
}

// cycleFirst finds a shortest cycle and renumbers the nodes so that it leads.
func (g *Graph) cycleFirst() {
	cycle := g.shortestCycle()
	g.Cycle = len(cycle)
	order := append([]int{}, cycle...)
	place := make([]int, len(g.Nodes))
	for i := range place {
		place[i] = -1
	}
	for i, n := range cycle {
		place[n] = i
	}
	for i := range g.Nodes {
		if place[i] < 0 {
			place[i] = len(order)
			order = append(order, i)
		}
	}
	nodes := make([]Node, len(g.Nodes))
	for i, n := range g.Nodes {
		nodes[place[i]] = n
	}
	g.Nodes = nodes
	for i, e := range g.Edges {
		g.Edges[i].From, g.Edges[i].To = place[e.From], place[e.To]
	}
}

// shortestCycle returns a shortest cycle, found breadth first from each node. If several are equally
// short, it returns the one with the first node. It returns nil if there is no cycle.
func (g *Graph) shortestCycle() (best []int) {
	next := make([][]int, len(g.Nodes))
	for _, e := range g.Edges {
		next[e.From] = append(next[e.From], e.To)
	}
	for start := range g.Nodes {
		if c := ring(next, start); c != nil && (best == nil || len(c) < len(best)) {
			best = c
		}
	}
	return best
}

// ring is a shortest way from start back to start.
func ring(next [][]int, start int) []int {
	from := make([]int, len(next))
	for i := range from {
		from[i] = -1
	}
	for queue := []int{start}; len(queue) > 0; queue = queue[1:] {
		for _, to := range next[queue[0]] {
			if to == start {
				var way []int
				for n := queue[0]; n != start; n = from[n] {
					way = append([]int{n}, way...)
				}
				return append([]int{start}, way...)
			}
			if from[to] < 0 {
				from[to] = queue[0]
				queue = append(queue, to)
			}
		}
	}
	return nil
}
