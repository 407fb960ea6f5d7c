// Package oracle compares package nettrace with another reader of version 4.
package oracle

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	peer "github.com/pyroscope-io/dotnetdiag/nettrace"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
)

type counts struct{ Events, Metadata, Stacks, Points int64 }

func theirs(t *testing.T, raw []byte) (c counts) {
	s := peer.NewStream(bytes.NewReader(raw))
	if _, err := s.Open(); err != nil {
		t.Fatal(err)
	}
	s.EventHandler = func(*peer.Blob) error { c.Events++; return nil }
	s.MetadataHandler = func(*peer.Metadata) error { c.Metadata++; return nil }
	s.StackBlockHandler = func(b *peer.StackBlock) error { c.Stacks += int64(len(b.Stacks)); return nil }
	s.SequencePointBlockHandler = func(*peer.SequencePointBlock) error { c.Points++; return nil }
	for {
		if err := s.Next(); errors.Is(err, io.EOF) {
			return c
		} else if err != nil {
			t.Fatalf("the other reader: %v", err)
		}
	}
}

func ours(t *testing.T, raw []byte) counts {
	r := nettrace.NewReader(bytes.NewReader(raw))
	for {
		if _, err := r.Next(); err == io.EOF {
			c := r.Counts()
			return counts{c.Events, c.Metadata, c.Stacks, c.Points}
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAgree(t *testing.T) {
	files, _ := filepath.Glob("../../waits/testdata/*.nettrace")
	vectors, _ := filepath.Glob("../../../../shared/vectors/nettrace/*.nettrace")
	if len(vectors) == 0 {
		t.Log("SKIPPED-CHECK: no ../shared/vectors/nettrace: the recorded traces with third-party files are not compared")
	}
	if len(files) == 0 {
		t.Fatal("no traces")
	}
	for _, path := range append(files, vectors...) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		a, b := ours(t, raw), theirs(t, raw)
		if a != b {
			t.Errorf("%s: %+v, the other reader %+v", filepath.Base(path), a, b)
		}
		t.Logf("%s: %+v", filepath.Base(path), a)
	}
}
