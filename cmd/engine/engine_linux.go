package engine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/outside"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/target"
)

const (
	socket     = 3
	greetLimit = 5 * time.Second
	// givenFlag is the flag that gives the address of the client library's code in the program.
	givenFlag = "code"
)

// fileAt returns the file that a process has mapped at an address, or "".
func fileAt(pid int, addr uint64) string {
	maps, _ := live.Maps(pid)
	for i := range maps {
		if m := &maps[i]; m.Start <= addr && addr < m.End {
			return strings.TrimSuffix(m.Path, " (deleted)")
		}
	}
	return ""
}

// client returns the connection to the client: descriptor 3.
func client() (*net.UnixConn, error) {
	f := os.NewFile(socket, "client")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d is not a socket; %s", socket, onlyClients)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("descriptor %d is not a unix socket", socket)
	}
	return u, nil
}

// serve samples the process until the process ends, or the client shuts down its sending side. The client
// library has code mapped.
func serve(c *net.UnixConn, pid int, code uint64, cfg sampler.Config) error {
	cfg.Probe = fileAt(pid, code)
	fd, err := greeting(c)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if why := target.Refuses(pid); why != "" {
		return errors.New(why)
	}
	q := newQueue()
	e, err := outside.New(pid, fd, cfg, q)
	if err != nil {
		return err
	}
	sandbox(pid, cfg.Raw != "") // if the kernel has no such filters, the helper works without it
	run(e, pid, q, c, endOf(c))
	return nil
}

// greeting receives the probe's file.
func greeting(c *net.UnixConn) (fd int, err error) {
	c.SetReadDeadline(time.Now().Add(greetLimit))
	defer c.SetReadDeadline(time.Time{})
	b, control := make([]byte, 8), make([]byte, unix.CmsgSpace(4))
	n, oob, _, _, err := c.ReadMsgUnix(b, control)
	if err != nil {
		return -1, fmt.Errorf("the client sent nothing: %w", err)
	}
	if fd, err = probe.Greeted(b[:n], control[:oob]); err == nil && fd < 0 {
		err = errors.New("the client sent no file")
	}
	return fd, err
}
