package image

import (
	"errors"
	"math/rand/v2"
)

func (s ShapeAMD64) Func(f Format, name string) (Func, error) { return Func{}, errors.New("todo") }

// RandomAMD64 draws a function from the whole space of shapes.
func RandomAMD64(r *rand.Rand, f Format, name string) Func { return Func{} }

func traceRows(f *Func, a Arch) []Row { return make([]Row, len(f.Ops)) }

func writePE(im *Image) error { return errors.New("todo") }
func pdataAMD64(im *Image, xdata func(b []byte) (rva uint32)) ([]byte, error) {
	return nil, errors.New("todo")
}
