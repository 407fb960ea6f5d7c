package unwind

// Address is where a frame stands: an instruction that was interrupted, or a
// return address, which is one byte past the call. It alone knows what to look
// up: nothing else subtracts.
type Address struct {
	IP    uint64
	Exact bool // IP is an interrupted instruction rather than a return address
}

// Instruction is the address of a frame that was interrupted.
func Instruction(ip uint64) Address { return Address{IP: ip, Exact: true} }

// ReturnAddress is the address of a frame that has made a call.
func ReturnAddress(ip uint64) Address { return Address{IP: ip} }

// Lookup is the address whose code, unwind data and symbol are the frame's: IP
// itself if exact, the last byte of the call for a return address. A call may
// be a function's last instruction, and what follows it another's.
func (a Address) Lookup() uint64 {
	if a.Exact || a.IP == 0 {
		return a.IP
	}
	return a.IP - 1
}
