//go:build !linux

package startup

type Sampler struct{ pid int }

func newStartup(pid int) *Sampler { return nil }

func (s *Sampler) End() {}
