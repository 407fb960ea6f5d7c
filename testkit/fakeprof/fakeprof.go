// Package fakeprof connects to the tool as a profiler does, for tests in which
// a program without a CLR plays the target.
package fakeprof

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strings"
)

// Dial connects to where SEEDWALK_SOCKET says: a unix socket's path, or
// tcp:ADDRESS:PORT:SECRET, where the secret and the process id come first.
func Dial(where string) (net.Conn, error) {
	rest, tcp := strings.CutPrefix(where, "tcp:")
	if !tcp {
		return net.Dial("unix", where)
	}
	i := strings.LastIndexByte(rest, ':')
	if i < 0 {
		return nil, fmt.Errorf("%q is not tcp:ADDRESS:PORT:SECRET", where)
	}
	c, err := net.Dial("tcp4", rest[:i])
	if err != nil {
		return nil, err
	}
	_, err = c.Write(binary.LittleEndian.AppendUint32([]byte(rest[i+1:]), uint32(os.Getpid())))
	return c, err
}
