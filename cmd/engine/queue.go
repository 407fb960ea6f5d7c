//go:build linux || (windows && amd64)

package engine

import (
	"io"
	"sync"
)

// maxQueued bounds the bytes in a queue: about 10 s of samples of a busy program.
const maxQueued = 4 << 20

// queue carries the engine's stream to the namer. The namer reads the symbols of images for seconds on a slow
// machine. Meanwhile the engine continues to sample, and waits only if the queue is full.
type queue struct {
	mu      sync.Mutex
	changed sync.Cond
	bytes   []byte // what was written; the first read of them have been read
	read    int
	closed  bool
}

func newQueue() *queue {
	q := &queue{}
	q.changed.L = &q.mu
	return q
}

// Write waits while the queue is full. It returns io.ErrClosedPipe if the queue is closed.
func (q *queue) Write(b []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.left() > 0 && q.left()+len(b) > maxQueued && !q.closed {
		q.changed.Wait()
	}
	if q.closed {
		return 0, io.ErrClosedPipe
	}
	q.bytes = append(q.bytes, b...)
	q.changed.Signal()
	return len(b), nil
}

// Read waits while the queue is empty. It returns io.EOF if the queue is empty and closed.
func (q *queue) Read(b []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.left() == 0 && !q.closed {
		q.changed.Wait()
	}
	if q.left() == 0 {
		return 0, io.EOF
	}
	n := copy(b, q.bytes[q.read:])
	if q.read += n; q.read >= q.left() { // so that no byte is moved twice
		q.bytes, q.read = q.bytes[:copy(q.bytes, q.bytes[q.read:])], 0
	}
	q.changed.Signal()
	return n, nil
}

// left returns the number of bytes that were written and not yet read.
func (q *queue) left() int { return len(q.bytes) - q.read }

// Close ends the stream. Later writes fail. The bytes in the queue can still be read.
func (q *queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
