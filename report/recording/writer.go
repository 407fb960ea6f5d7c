package recording

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"sync"

	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/wire"
)

// Version is the version of the files that this package writes, and the newest that it reads.
const Version = 1

const magic = "SWREC\r\n"

// Types of items of the recording itself.
const (
	itemInfo    = 1
	itemProcess = 2
	itemImage   = 3
	itemName    = 4
	itemEnd     = 5
)

// keepSuspension is a flag of itemProcess.
const keepSuspension = 1

const (
	blockBytes = 1 << 20 // raw bytes after which a block ends
	headBytes  = 12      // of a block's header
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Name is the name of an address in an image, and the range of its function.
type Name struct {
	Path, BuildID string
	Addr          uint64 // the image's own address
	Start, End    uint64 // range of the function, 0 = unknown
	Name          string // "" = unknown
	File          string // source file, "" = unknown
	Line          uint64
}

// Writer writes a recording file. It is safe for concurrent use. After an error it drops
// everything else, and every method that returns an error returns that one.
type Writer struct {
	mu     sync.Mutex
	out    io.Writer
	item   *wire.Writer // one message
	raw    []byte       // the open block
	packed bytes.Buffer
	images map[[2]string]uint64
	err    error
}

// deflaters are shared by all Writers: each has more than a megabyte, and is in use for less
// than a millisecond each second.
var deflaters = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // the level is valid
	return w
}}

// NewWriter returns a Writer and writes the head of the file.
func NewWriter(out io.Writer) *Writer {
	w := &Writer{out: out, item: wire.NewWriter(nil), images: map[[2]string]uint64{}}
	_, w.err = out.Write(append([]byte(magic), Version))
	return w
}

// Process introduces a process. number counts from 1.
func (w *Writer) Process(number uint64, p *collect.Process) {
	payload := binary.AppendUvarint(nil, number)
	payload = binary.AppendUvarint(payload, uint64(p.PID))
	flags := uint64(0)
	if p.KeepSuspension {
		flags |= keepSuspension
	}
	payload = binary.AppendUvarint(payload, flags)
	w.own(itemProcess, appendString(payload, p.Name))
}

// Message adds a message of a process.
func (w *Writer) Message(number uint64, m wire.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.item.Reset()
	w.item.Message(m)
	w.add(number, w.item.Bytes())
}

// Info adds what the recorder knows. It replaces an earlier Info.
func (w *Writer) Info(info *collect.Info) error {
	text, err := json.Marshal(info)
	if err != nil {
		return err
	}
	w.own(itemInfo, text)
	return w.Flush()
}

// Name adds a name.
func (w *Writer) Name(n *Name) {
	key := [2]string{n.Path, n.BuildID}
	image, ok := w.images[key]
	if !ok {
		image = uint64(len(w.images) + 1)
		w.images[key] = image
		w.own(itemImage, appendString(appendString(binary.AppendUvarint(nil, image), n.Path), n.BuildID))
	}
	payload := binary.AppendUvarint(nil, image)
	for _, v := range [...]uint64{n.Addr, n.Start, n.End} {
		payload = binary.AppendUvarint(payload, v)
	}
	payload = appendString(payload, n.Name)
	if n.File != "" {
		payload = binary.AppendUvarint(appendString(payload, n.File), n.Line)
	}
	w.own(itemName, payload)
}

// End marks the recording as complete. Nothing may be added afterwards.
func (w *Writer) End() error {
	w.own(itemEnd, []byte{1})
	return w.Flush()
}

// Flush writes the open block.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
	return w.err
}

// own adds an item of the recording.
func (w *Writer) own(itemType byte, payload []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(payload) > wire.MaxPayload {
		return
	}
	w.add(0, append(binary.AppendUvarint([]byte{itemType}, uint64(len(payload))), payload...))
}

func (w *Writer) add(process uint64, item []byte) {
	if w.err != nil {
		return
	}
	if len(w.raw)+len(item) > blockBytes {
		w.flush()
	}
	w.raw = append(binary.AppendUvarint(w.raw, process), item...)
}

func (w *Writer) flush() {
	if w.err != nil || len(w.raw) == 0 {
		return
	}
	w.packed.Reset()
	w.packed.Write(make([]byte, headBytes))
	deflate := deflaters.Get().(*flate.Writer)
	deflate.Reset(&w.packed)
	deflate.Write(w.raw) // to a buffer: cannot fail
	deflate.Close()
	deflate.Reset(nil)
	deflaters.Put(deflate)
	block := w.packed.Bytes()
	body := block[headBytes:]
	binary.LittleEndian.PutUint32(block, uint32(len(body)))
	binary.LittleEndian.PutUint32(block[4:], uint32(len(w.raw)))
	binary.LittleEndian.PutUint32(block[8:], crc32.Checksum(body, castagnoli))
	_, w.err = w.out.Write(block)
	w.raw = w.raw[:0]
}

func appendString(b []byte, s string) []byte {
	s = s[:min(len(s), wire.MaxString)]
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
