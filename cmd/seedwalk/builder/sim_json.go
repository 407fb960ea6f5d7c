package builder

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/sim/rules"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/story"
)

type jsonScenario struct {
	Name   string       `json:"name"`
	Rule   string       `json:"rule"`
	Text   string       `json:"text"`
	Source string       `json:"source"`
	Ends   string       `json:"ends"`
	CLR    string       `json:"clr"`
	Arch   string       `json:"arch"`
	Broken *jsonSimSide `json:"broken,omitempty"`
	Kept   *jsonSimSide `json:"kept,omitempty"`
}

type jsonSimSide struct {
	Interleavings int        `json:"interleavings"`
	Deepest       int        `json:"deepest"`
	Pruned        int        `json:"pruned"`
	Orders        float64    `json:"orders"` // with those of the runs that were cut
	Exhausted     bool       `json:"exhausted"`
	Done          int        `json:"done"`
	Judged        float64    `json:"judged"` // orders
	Results       int        `json:"results"`
	Deadlocks     int        `json:"deadlocks"`
	Faults        int        `json:"faults"`
	Endless       int        `json:"endless"`
	Wrong         string     `json:"wrong,omitempty"`
	Run           *uint64    `json:"run,omitempty"`
	Found         *jsonFound `json:"found,omitempty"`
}

type jsonFound struct {
	Outcome string      `json:"outcome"`
	Steps   int         `json:"steps"`
	Hash    string      `json:"hash"`
	Fault   string      `json:"fault,omitempty"`
	Choices []int       `json:"choices"`
	Cycle   []string    `json:"cycle,omitempty"`
	Graph   *jsonGraph  `json:"graph,omitempty"`
	Trace   []jsonEvent `json:"trace,omitempty"`
}

type jsonGraph struct {
	Nodes []jsonNode `json:"nodes"`
	Edges []jsonEdge `json:"edges"`
}

type jsonNode struct {
	Name  string   `json:"name"`
	Lock  bool     `json:"lock"`
	At    string   `json:"at,omitempty"`
	Stack []string `json:"stack,omitempty"`
}

type jsonEdge struct {
	From string `json:"from"`
	To   string `json:"to"`
	What string `json:"what"`
}

type jsonEvent struct {
	Step   int    `json:"step"`
	Thread string `json:"thread"`
	What   string `json:"what"`
}

// simJSON writes the scenarios and the results of their sides.
func simJSON(w io.Writer, chosen []*rules.Rule, sides map[string][]*simSide, trace bool) int {
	out := struct {
		Scenarios []jsonScenario `json:"scenarios"`
	}{Scenarios: []jsonScenario{}}
	for _, r := range chosen {
		s := jsonScenario{Name: r.Name, Rule: r.Line, Text: r.Text, Source: r.Source, Ends: story.Ends(r),
			CLR: r.Setup.Variant.String(), Arch: r.Setup.Arch.String()}
		for _, side := range sides[r.Name] {
			if side.broken {
				s.Broken = sideJSON(side, trace)
			} else {
				s.Kept = sideJSON(side, trace)
			}
		}
		out.Scenarios = append(out.Scenarios, s)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if e.Encode(out) != nil {
		return cli.ExitWrong
	}
	return cli.ExitOK
}

func sideJSON(s *simSide, trace bool) *jsonSimSide {
	r := &s.Report
	return &jsonSimSide{Interleavings: r.Interleavings, Deepest: r.MaxDepth,
		Pruned: r.Pruned, Orders: r.Orders.All, Exhausted: r.Exhausted,
		Done: r.Done, Judged: r.Orders.Judged, Results: len(r.Results), Deadlocks: r.Deadlocks,
		Faults: r.Faults, Endless: r.StepLimits, Wrong: s.Wrong, Run: s.run,
		Found: foundJSON(s.found, trace)}
}

func foundJSON(r *sched.Result, trace bool) *jsonFound {
	if r == nil {
		return nil
	}
	f := &jsonFound{Outcome: r.Outcome.String(), Steps: r.Steps, Hash: fmt.Sprintf("%016x", r.Hash),
		Fault: r.Fault, Choices: r.Choices}
	if f.Choices == nil {
		f.Choices = []int{}
	}
	if g := r.Graph; g != nil {
		f.Cycle, f.Graph = g.CycleNames(), graphJSON(g)
	}
	if trace {
		for _, e := range r.Trace {
			f.Trace = append(f.Trace, jsonEvent{e.Step, r.Actors[e.Actor], e.Text})
		}
	}
	return f
}

func graphJSON(g *sched.Graph) *jsonGraph {
	out := &jsonGraph{}
	for _, n := range g.Nodes {
		out.Nodes = append(out.Nodes, jsonNode{n.Name, n.Lock, n.State, n.Stack})
	}
	for _, e := range g.Edges {
		out.Edges = append(out.Edges, jsonEdge{g.Nodes[e.From].Name, g.Nodes[e.To].Name, e.Text})
	}
	return out
}
