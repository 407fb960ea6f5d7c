package replay

// peRun replays the PE kinds.
type peRun struct{ r *Runner }

func (r *Runner) newPE() *peRun { return &peRun{r} }

func (x *peRun) line(data []byte) error { return nil }
