package inspect

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/seedwalk/seedwalk/context"
)

// ErrFormat means that a file is neither an ELF nor a PE image.
var ErrFormat = errors.New("neither an ELF nor a PE image")

// Image is an opened image of either format.
type Image struct {
	Path   string
	reader reader
}

// reader is the interface of an image format.
type reader interface {
	summary() *Summary
	// function describes the function at an address of the image's own.
	function(addr uint64) (*Function, error)
	check(c *checker)
	// symbol finds a function's address by its name.
	symbol(name string) (uint64, bool)
	// own converts a number from the user to the image's own address.
	own(v uint64) uint64
}

// Summary describes an image.
type Summary struct {
	File     string    `json:"file"`
	Format   string    `json:"format"` // elf | pe
	Arch     string    `json:"arch"`   // amd64 | arm64
	Machine  string    `json:"machine,omitempty"`
	ID       string    `json:"id"`   // build id, or GUID and age; "" = none
	Base     uint64    `json:"base"` // preferred load address of a PE image
	Sections []Section `json:"sections"`
	Counts   []Count   `json:"counts"`
	Problems []string  `json:"problems,omitempty"`
}

// Section holds unwind data.
type Section struct {
	Name string `json:"name"`
	Addr uint64 `json:"addr"` // ELF virtual address or RVA
	Size uint64 `json:"size"` // bytes
}

// Count is one figure of a summary.
type Count struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

// Open opens an image. The first bytes of the file decide its format.
func Open(path string) (*Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var magic [4]byte
	n, err := io.ReadFull(f, magic[:])
	f.Close()
	if err != nil && n < 2 {
		return nil, fmt.Errorf("%s: %w", path, ErrFormat)
	}
	im := &Image{Path: path}
	switch {
	case string(magic[:]) == "\x7fELF":
		im.reader, err = openELF(path)
	case string(magic[:2]) == "MZ":
		im.reader, err = openPE(path)
	default:
		err = fmt.Errorf("%s: %w", path, ErrFormat)
	}
	if err != nil {
		return nil, err
	}
	return im, nil
}

// Summary describes the image.
func (im *Image) Summary() *Summary { return im.reader.summary() }

// At describes the function at what: a symbol's name, or a hexadecimal address
// (ELF virtual address, RVA, or an RVA plus the image's base).
func (im *Image) At(what string) (*Function, error) {
	addr, ok := im.reader.symbol(what)
	if !ok {
		v, err := strconv.ParseUint(strings.TrimPrefix(what, "0x"), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is neither a symbol nor a hexadecimal address", im.Path, what)
		}
		addr = im.reader.own(v)
	}
	f, err := im.reader.function(addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", im.Path, err)
	}
	return f, nil
}

// Function is one function's unwind data and its effect.
type Function struct {
	Name  string       `json:"name"`
	Lo    uint64       `json:"lo"` // ELF virtual addresses or RVAs
	Hi    uint64       `json:"hi"`
	Asked uint64       `json:"asked"`
	Arch  context.Arch `json:"arch"`
	From  string       `json:"from"` // the structure that says it, and where it lies
	Data  []string     `json:"data"` // rows, or codes with chained and packed forms expanded
	Lines []Line       `json:"lines"`
	Notes []string     `json:"notes,omitempty"`

	// Of PE images with DWARF sections:
	Governs string    `json:"governs,omitempty"` // the data that the walkers use at the requested address
	Also    *Function `json:"also,omitempty"`    // the other structure, which the walkers ignore
}

// Line is one instruction and where the caller's registers are before it runs.
type Line struct {
	Addr  uint64 `json:"addr"`
	Bytes string `json:"bytes"`
	Text  string `json:"text"`
	Part  string `json:"part,omitempty"` // PE: prolog | body | epilog
	CFA   string `json:"cfa"`
	Saved string `json:"saved"`
}
