package recording

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/seedwalk/seedwalk/internal/buf"
	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/wire"
)

// Bounds of what a reader accepts.
const (
	maxRaw       = blockBytes + wire.MaxPayload + 16 // raw bytes of a block
	maxProcesses = 1 << 16
	maxNames     = 1 << 22
)

// ErrFormat means that a file is no recording.
var ErrFormat = errors.New("not a seedwalk recording (.swrec)")

// DamageError describes where a recording is cut or damaged. Everything before is kept.
type DamageError struct {
	Offset int64 // of the block in the file, in bytes
	What   string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("damaged at offset %d: %s; everything before it is kept", e.Offset, e.What)
}

// Recording is the content of a file.
type Recording struct {
	Info      collect.Info
	Processes []*collect.Process
	Names     Names
	Complete  bool  // the recording ended as intended
	Damage    error // a *DamageError or the error of the reader, nil = none
}

// Read reads a recording. If there is nothing to keep, the error is ErrFormat, a *wire.VersionError, or r's.
// Later damage is in Recording.Damage.
func Read(r io.Reader) (*Recording, error) {
	head := make([]byte, len(magic)+1)
	if _, err := io.ReadFull(r, head); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil, ErrFormat
		}
		return nil, err
	}
	if string(head[:len(magic)]) != magic {
		return nil, ErrFormat
	}
	if v := head[len(magic)]; v > Version {
		return nil, &wire.VersionError{Got: uint64(v)}
	}
	f := &file{r: r, offset: int64(len(head)), out: &Recording{Names: Names{byAddr: map[key]*Name{}}},
		images: map[uint64][2]string{}, byNumber: map[uint64]*collect.Process{}}
	for f.out.Damage == nil {
		raw, err := f.block()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = f.items(raw)
		}
		f.out.Damage = err
	}
	return f.out, nil
}

// file is a recording that is being read.
type file struct {
	r        io.Reader
	offset   int64 // of the block that is read next
	began    int64 // of the current block
	out      *Recording
	images   map[uint64][2]string
	byNumber map[uint64]*collect.Process
	buf      bytes.Buffer
}

func (f *file) damage(format string, args ...any) error {
	return &DamageError{Offset: f.began, What: fmt.Sprintf(format, args...)}
}

// block reads the next block and returns its raw bytes, io.EOF at the end of the file.
func (f *file) block() ([]byte, error) {
	f.began = f.offset
	var head [headBytes]byte
	if n, err := io.ReadFull(f.r, head[:]); err == io.EOF {
		return nil, io.EOF
	} else if err == io.ErrUnexpectedEOF {
		return nil, f.damage("the file ends in the header of a block, after %d bytes", n)
	} else if err != nil {
		return nil, err
	}
	size, rawSize := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
	if size > maxRaw || rawSize > maxRaw {
		return nil, f.damage("a block of %d bytes (%d uncompressed)", size, rawSize)
	}
	f.buf.Reset()
	if n, err := io.CopyN(&f.buf, f.r, int64(size)); err == io.EOF {
		return nil, f.damage("the file ends in a block, after %d of %d bytes", n, size)
	} else if err != nil {
		return nil, err
	}
	f.offset += headBytes + int64(size)
	if crc32.Checksum(f.buf.Bytes(), castagnoli) != binary.LittleEndian.Uint32(head[8:]) {
		return nil, f.damage("wrong checksum")
	}
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(&f.buf), int64(rawSize)+1))
	if err != nil || len(raw) != int(rawSize) {
		return nil, f.damage("a block of %d bytes where %d are stated", len(raw), rawSize)
	}
	return raw, nil
}

// items decodes the items of a block.
func (f *file) items(raw []byte) error {
	for rest := raw; len(rest) > 0; {
		at := len(raw) - len(rest)
		number, k := binary.Uvarint(rest)
		if k <= 0 {
			return f.damage("no process number at byte %d of the block", at)
		}
		rest = rest[k:]
		size, err := 0, error(nil)
		if number == 0 {
			size, err = f.own(rest)
		} else {
			size, err = f.message(number, rest)
		}
		if err != nil {
			return f.damage("%v (byte %d of the block)", err, at)
		}
		rest = rest[size:]
	}
	return nil
}

// message decodes a message of a process.
func (f *file) message(number uint64, b []byte) (size int, err error) {
	m, size, err := wire.Parse(b)
	if err != nil || m == nil {
		return size, err
	}
	p := f.byNumber[number]
	if p == nil {
		return size, fmt.Errorf("a message of process %d, which was not introduced", number)
	}
	p.Take(m)
	return size, nil
}

// own decodes an item that belongs to the recording and not to a process.
func (f *file) own(b []byte) (size int, err error) {
	if len(b) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, k := binary.Uvarint(b[1:])
	if k <= 0 || n > uint64(len(b)-1-k) {
		return 0, io.ErrUnexpectedEOF
	}
	d := payload{buf.Reader{Data: b[1+k : 1+k+int(n)]}}
	switch b[0] {
	case itemInfo:
		var info collect.Info
		if err := json.Unmarshal(d.Rest(), &info); err != nil {
			return 0, err
		}
		f.out.Info = info
	case itemProcess:
		f.process(&d)
	case itemImage:
		number := d.ULEB()
		if len(f.images) < maxProcesses {
			f.images[number] = [2]string{d.string(), d.string()}
		}
	case itemName:
		f.name(&d)
	case itemEnd:
		f.out.Complete = true
	}
	if !d.OK() {
		return 0, fmt.Errorf("an item of type %d is too short", b[0])
	}
	return 1 + k + int(n), nil
}

func (f *file) process(d *payload) {
	number, pid, flags, name := d.ULEB(), d.ULEB(), d.ULEB(), d.string()
	if !d.OK() || len(f.byNumber) >= maxProcesses || f.byNumber[number] != nil {
		return
	}
	p := collect.NewProcess(int(min(pid, 1<<31)), name)
	p.KeepSuspension = flags&keepSuspension != 0
	f.byNumber[number] = p
	f.out.Processes = append(f.out.Processes, p)
}

func (f *file) name(d *payload) {
	image := f.images[d.ULEB()]
	n := &Name{Path: image[0], BuildID: image[1], Addr: d.ULEB(), Start: d.ULEB(),
		End: d.ULEB(), Name: d.string()}
	if len(d.Rest()) > 0 {
		n.File, n.Line = d.string(), d.ULEB()
	}
	if d.OK() && len(f.out.Names.byAddr) < maxNames {
		f.out.Names.byAddr[n.key()] = n
	}
}

// payload reads the fields of an item. After an error every later field is zero.
type payload struct{ buf.Reader }

func (d *payload) string() string { return string(d.Bytes(d.ULEB())) }
