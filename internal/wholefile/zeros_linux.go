//go:build amd64 || arm64

package wholefile

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Variables of the handler, which is in assembly: it runs wherever the fault is, also inside of Go's runtime.
var (
	pageSize    uint64
	nextHandler uintptr // Go's own handler, for all other causes of SIGBUS
	zeroPages   uint64
)

// onBus is the handler of SIGBUS. If the page at the fault's address is not in its file, onBus maps zeros
// there, and the read is tried again.
func onBus()

var _, _ = onBus, nextHandler // the kernel and the assembly use them

func onBusAddress() uintptr

// ReadCutAsZeros makes the missing pages of mapped files zeros in this process, from now on. Without it, a
// missing page ends the process. A page is missing if the file was cut off after it was mapped, or if it
// cannot be read from the disk. A program calls ReadCutAsZeros at its start. A library does not: the handler
// belongs to its program.
var ReadCutAsZeros = sync.OnceFunc(func() {
	var action struct { // as the kernel has it
		handler  uintptr
		flags    uint64
		restorer uintptr
		mask     uint64
	}
	call := func(change, old unsafe.Pointer) bool {
		_, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGBUS), uintptr(change),
			uintptr(old), unsafe.Sizeof(action.mask), 0, 0)
		return e == 0
	}
	const ignored = 1 // SIG_DFL is 0, SIG_IGN is 1
	if !call(nil, unsafe.Pointer(&action)) || action.handler <= ignored {
		return
	}
	pageSize, nextHandler = uint64(os.Getpagesize()), action.handler
	action.handler = onBusAddress()
	call(unsafe.Pointer(&action), nil)
})

// ZeroPages returns how many missing pages of mapped files were read.
func ZeroPages() uint64 { return atomic.LoadUint64(&zeroPages) }
