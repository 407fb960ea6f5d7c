package pevec

import "testing"

func TestDecodeLines(t *testing.T) {
	v, err := Parse([]byte(`{"id":"a","kind":"decode","arch":"amd64","begin":"10","end":"20","unwind":"30","raw":"01","fields":{"version":1,"frame_reg":5,"codes":[[4,"PUSH_NONVOL",5,null]],"handler":"40"}}`))
	if err != nil {
		t.Fatal(err)
	}
	var f AMD64Fields
	if err := v.DecodeFields(&f); err != nil || f.Version != 1 || f.FrameReg != 5 || len(f.Codes) != 1 || *f.Handler != "40" {
		t.Errorf("%v, %+v", err, f)
	}
	if rva, err := v.UnwindRVA(); err != nil || rva != 0x30 {
		t.Errorf("%#x, %v", rva, err)
	}
	v, err = Parse([]byte(`{"id":"b","kind":"decode-object","arch":"arm64","sections":{".pdata#4":"00ff"},"llvm19":[["f","x"]]}`))
	if err != nil {
		t.Fatal(err)
	}
	if lines, err := v.LLVMLines(); err != nil || len(lines) != 1 || lines[0][1] != "x" || len(v.Sections[".pdata#4"]) != 2 {
		t.Errorf("%v, %v", err, lines)
	}
}

func TestDecodeRefuses(t *testing.T) {
	v, err := Parse([]byte(`{"id":"a","kind":"decode","unwind":"100000000","fields":{"version":"x"},"llvm19":"text"}`))
	if err != nil {
		t.Fatal(err)
	}
	var f AMD64Fields
	if v.DecodeFields(&f) == nil {
		t.Error("a version that is no number is read")
	}
	if _, err := v.UnwindRVA(); err == nil {
		t.Error("an RVA of 33 bits is read")
	}
	if _, err := v.LLVMLines(); err == nil {
		t.Error("text is read as lines")
	}
}
