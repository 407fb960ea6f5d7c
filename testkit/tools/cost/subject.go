package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// subject is a program that works without an end and counts its units in a file.
type subject struct {
	dir  string
	cmd  *exec.Cmd
	live io.Closer // its standard input; the program ends when it is closed
	file *os.File
}

// Of Cost.cs: the size of the file, and what each thread has of it.
const (
	countRoom = 4096
	countLine = 64
)

func (o *options) start(p program) (*subject, error) {
	dir, err := os.MkdirTemp("", "seedwalk-cost")
	if err != nil {
		return nil, err
	}
	s := &subject{dir: dir}
	if err := s.begin(o, p); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	return s, nil
}

func (s *subject) begin(o *options, p program) (err error) {
	path := filepath.Join(s.dir, "units")
	if err := os.WriteFile(path, make([]byte, countRoom), 0o600); err != nil {
		return err
	}
	if s.file, err = os.Open(path); err != nil {
		return err
	}
	s.cmd = exec.Command(filepath.Join(o.root, "out/bin/swhost"), filepath.Join(o.root, o.runtime),
		filepath.Join(o.root, "out/samples/Cost.exe"), p.name, path)
	s.cmd.Stderr = os.Stderr
	if s.live, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	return s.cmd.Start()
}

func (s *subject) pid() int { return s.cmd.Process.Pid }

// close ends the program.
func (s *subject) close() error {
	s.live.Close()
	err := s.cmd.Wait()
	s.file.Close()
	os.RemoveAll(s.dir)
	return err
}

// units returns the sum of the units of all threads.
func (s *subject) units() (n float64) {
	var b [countRoom]byte
	if _, err := s.file.ReadAt(b[:], 0); err != nil {
		return 0
	}
	for at := 0; at < countRoom; at += countLine {
		n += float64(binary.NativeEndian.Uint64(b[at:]))
	}
	return n
}
