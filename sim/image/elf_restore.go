package image

// RestoreRT makes SignalReturn's trampoline without call frame information, as in
// libraries stripped of it and in the ARM64 vDSO: a walker has to know it by its
// code.
func RestoreRT(a Arch) Func {
	f := SignalReturn(a)
	f.NoInfo = true
	return f
}
