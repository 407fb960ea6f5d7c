//go:build !windows

package record

// NativeMachine is the machine's own architecture, named as GOARCH is, where a system
// runs programs for others; "" = not known, and nothing is refused.
func NativeMachine() string { return "" }
