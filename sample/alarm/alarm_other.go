//go:build !linux

package alarm

func New() Alarm { return newGoTimer() }
