package machine

import "github.com/seedwalk/seedwalk/sim/image"

type Thread struct{}

func New(a image.Arch, low, high uint64, seed uint64) *Thread     { return nil }
func (t *Thread) Start(im *image.Image, f *image.Func)            {}
func (t *Thread) Step() Event                                     { return Ended }
func (t *Thread) Call(im *image.Image, f *image.Func)             {}
func (t *Thread) Skip()                                           {}
func (t *Thread) Op() (*image.Op, image.Part)                     { return nil, 0 }
func (t *Thread) Interrupt(im *image.Image, f *image.Func)        {}
func (t *Thread) Enter(im *image.Image, f *image.Func, ra uint64) {}
func (t *Thread) Truth(out []Frame) []Frame                       { return nil }
func (t *Thread) Depth() int                                      { return 0 }
func (t *Thread) State() State                                    { return State{} }
func (t *Thread) Stack() (addr uint64, live []byte)               { return 0, nil }
func (t *Thread) Word(addr uint64) (uint64, bool)                 { return 0, false }
func (t *Thread) Poke(addr, v uint64)                             {}
func (t *Thread) RunTo(cond func(*Thread) bool, max int) bool     { return false }
func (t *Thread) AltStack(low, high uint64)                       {}
func (t *Thread) CopyFrom(src *Thread)                            {}
func Unwind(a image.Arch, find func(addr uint64) (*image.Image, *image.Func), st State, exact bool, read func(uint64) (uint64, bool)) (State, bool) {
	return State{}, false
}
