package main

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// The profiler sends the secret first. Programs that the target starts do not inherit its connection;
// otherwise the tool would wait for them after the target's end.
func TestDial(t *testing.T) {
	l := must.Get(net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	defer l.Close()
	c := must.Get(dial("tcp:" + l.Addr().String() + ":secret"))(t)
	defer c.close()
	tool := must.Get(l.Accept())(t)
	defer tool.Close()
	var hello [6 + 4]byte
	_, err := io.ReadFull(tool, hello[:])
	expect.True(t, err == nil && string(hello[:6]) == "secret" &&
		binary.LittleEndian.Uint32(hello[6:]) == windows.GetCurrentProcessId(), "%q, %v", hello, err)
	var flags uint32
	information := windows.NewLazySystemDLL("kernel32.dll").NewProc("GetHandleInformation")
	done, _, err := information.Call(uintptr(c), uintptr(unsafe.Pointer(&flags)))
	expect.True(t, done != 0 && flags&windows.HANDLE_FLAG_INHERIT == 0,
		"flags of the socket's handle %#x, %v", flags, err)
	expect.True(t, !c.ended(), "the tool has closed nothing")
	tool.(*net.TCPConn).CloseWrite()
	for end := time.Now().Add(5 * time.Second); !c.ended(); time.Sleep(time.Millisecond) {
		must.True(t, !time.Now().After(end), "it is not seen that the tool wants no more")
	}
	err = c.send([]byte("x"))
	expect.True(t, err == nil, "nothing can be said after that: %v", err)
	for _, where := range []string{"", "tcp:", "unix:/x", "tcp:127.0.0.1:1",
		"tcp:10.0.0.1:1:secret", "tcp:[::1]:1:secret"} {
		if c, err := dial(where); err == nil {
			c.close()
			t.Errorf("%q: connected", where)
		}
	}
}
