//go:build !linux

package startup

import "os/exec"

type Sampler struct{ pid int }

func newStartup(pid int) *Sampler { return nil }

func (s *Sampler) End() {}

// Start starts cmd. Its start is not sampled.
func (s *Starting) Start(cmd *exec.Cmd) error { return cmd.Start() }

// Wait waits for cmd to end.
func (s *Starting) Wait(cmd *exec.Cmd) error { return cmd.Wait() }
