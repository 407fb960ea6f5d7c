package sched

// Graph says who waits for whom when somebody can never move again.
type Graph struct{}

func (w *World) graph() *Graph { return &Graph{} }
