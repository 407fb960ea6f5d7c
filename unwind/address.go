package unwind

// Address is the position of a frame: an interrupted instruction, or a return address, which is one byte past
// the call. Only Address subtracts that byte for look-ups.
type Address struct {
	IP    uint64
	Exact bool // IP is an interrupted instruction, not a return address
}

// Instruction returns the address of a frame that was interrupted.
func Instruction(ip uint64) Address { return Address{IP: ip, Exact: true} }

// ReturnAddress returns the address of a frame that has made a call.
func ReturnAddress(ip uint64) Address { return Address{IP: ip} }

// Lookup returns the address to look up in code, unwind data, and symbols: IP itself if exact, the last byte
// of the call for a return address. A call may be a function's last instruction, followed by another
// function.
func (a Address) Lookup() uint64 {
	if a.Exact || a.IP == 0 {
		return a.IP
	}
	return a.IP - 1
}
