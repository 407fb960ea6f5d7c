package fuzz

import (
	"encoding/binary"
	"sort"
	"testing"

	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/peasm"
	"github.com/seedwalk/seedwalk/testkit/pevec"
)

func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// seedImage is a PE file and an address in it to step from.
type seedImage struct {
	file []byte
	rva  uint32
}

// seedImages returns real PE files for x64, and PE files that are made of recorded functions,
// for x64 and ARM64. Not every machine has a compiler for ARM64.
func seedImages(t testing.TB) map[string]seedImage {
	out := map[string]seedImage{"made": {imageSeed(), 0x1005}}
	for name, b := range seedFiles(t, "*.dll") {
		out[name] = seedImage{b, 0x1040}
	}
	for machine, file := range map[uint16]string{pe.MachineAMD64: "amd64-native.jsonl.gz",
		pe.MachineARM64: "arm64-native.jsonl.gz"} {
		pdata, blocks := recordedImage(t, file, 24)
		out[file] = seedImage{writeImage(machine, pdata, blocks), blocks[0].RVA + 16}
	}
	return out
}

// recordedImage collects the first n functions of a file of vectors that do not
// lie in each other's bytes.
func recordedImage(t testing.TB, file string, n int) (pdata []byte, blocks []pe.Block) {
	type function struct{ begin, end, data uint32 }
	var functions []function
	at := map[uint32][]byte{}
	if _, err := pevec.Each(file, func(v *pevec.Vector) error {
		fn := v.Functions[0]
		if _, ok := at[uint32(fn.Begin)]; ok || len(functions) == n || len(v.Mem) > 2 {
			return nil
		}
		functions = append(functions, function{uint32(fn.Begin), uint32(fn.End), uint32(fn.Data)})
		for _, m := range v.Mem {
			at[uint32(m.Addr)] = m.Data
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	sort.Slice(functions, func(i, j int) bool { return functions[i].begin < functions[j].begin })
	for _, fn := range functions {
		pdata = binary.LittleEndian.AppendUint32(pdata, fn.begin)
		if file[:5] == "amd64" {
			pdata = binary.LittleEndian.AppendUint32(pdata, fn.end)
		}
		pdata = binary.LittleEndian.AppendUint32(pdata, fn.data)
	}
	for rva, data := range at {
		blocks = append(blocks, pe.Block{RVA: rva, Data: data})
	}
	sort.Slice(blocks, func(i, j int) bool { return blocks[i].RVA < blocks[j].RVA })
	return pdata, blocks
}

// writeImage makes a PE32+ file with a section per block, and one for pdata
// behind them.
func writeImage(machine uint16, pdata []byte, blocks []pe.Block) []byte {
	last := blocks[len(blocks)-1]
	directory := (last.RVA + uint32(len(last.Data)) + 0xfff) &^ 0xfff
	blocks = append(blocks[:len(blocks):len(blocks)], pe.Block{RVA: directory, Data: pdata})
	im := peasm.File{Machine: machine,
		Dirs: map[int]peasm.Directory{peasm.Exception: {RVA: directory, Size: uint32(len(pdata))}}}
	for _, block := range blocks {
		im.Sections = append(im.Sections, peasm.Raw(".text", block.RVA, block.Data))
	}
	return im.Bytes()
}

// maxMapped bounds the mapped copies a fuzzer makes, bytes.
const maxMapped = 1 << 20

// mapImage lays a file's sections out as the loader does, as one piece and as
// blocks; nil if the image is too large for a fuzzer.
func mapImage(im *pe.File, headers []byte) (whole []byte, blocks []pe.Block) {
	if im.SizeOfImage() > maxMapped || int(im.SizeOfImage()) < len(headers) {
		return nil, nil
	}
	whole = make([]byte, im.SizeOfImage())
	copy(whole, headers)
	blocks = append(blocks, pe.Block{Data: headers})
	for _, s := range im.Sections() {
		data := im.Tail(s.RVA, maxMapped)
		if uint64(s.RVA)+uint64(len(data)) > uint64(len(whole)) || len(data) == 0 {
			continue
		}
		copy(whole[s.RVA:], data)
		blocks = append(blocks, pe.Block{RVA: s.RVA, Data: data})
	}
	return whole, blocks
}
