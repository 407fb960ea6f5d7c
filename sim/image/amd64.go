package image

// ShapeAMD64 is what an x86-64 function looks like, to be encoded by Func.
type ShapeAMD64 struct {
	Saves        []Reg  // nonvolatile general registers, in the order they are saved
	SavesXMM     []Reg  // XMM6-XMM15, PE only
	Alloc        uint32 // bytes of locals; grown as saves, calls and alignment need
	FramePointer bool
	FrameReg     Reg    // PE only; 0 = RBP
	FPOffset     uint32 // PE: the frame pointer is that many bytes above RSP: 0-240, a multiple of 16
	EarlyFP      bool   // the frame pointer is set before the allocation (always so in ELF)
	Dynamic      bool   // alloca after the prolog; needs a frame pointer
	SaveByMov    bool   // mov [rsp+n],reg instead of push
	Home         bool   // PE: stores into the caller's home area; with SaveByMov the first four saves go there
	Spread       bool   // other instructions between those of the prolog
	Calls        int    // call sites in the body
	Body         int    // nops of 1-9 bytes in the body
	Chained      bool   // PE: the later part has an entry of its own, which saves what is left to be saved by mov
	NoInfo       bool
	Root         bool
	Leaf         bool     // nothing saved, allocated or called
	TailJump     bool     // ends with a jump instead of a return
	RepRet       bool     // ends with rep ret
	JumpForm     JumpForm // how it jumps
	MachineFrame bool     // PE: entered by a trap
	ErrorCode    bool     // with MachineFrame: the processor pushed one
}

// JumpForm is how a tail jump is encoded.
type JumpForm uint8

const (
	JumpRel JumpForm = iota // jmp rel32
	JumpMem                 // jmp [rip+disp]
	JumpReg                 // rex.w jmp rax
)
