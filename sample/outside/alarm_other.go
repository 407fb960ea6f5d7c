//go:build !linux

package outside

func newAlarm() alarm { return newBell() }
