package contract

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func descriptorText(t testing.TB, name string) []byte {
	t.Helper()
	return must.Get(os.ReadFile("testdata/contract/" + name + ".json"))(t)
}

// The descriptors of real runtimes, compared with values that a person read in them.
func TestRealDescriptors(t *testing.T) {
	for _, c := range []struct {
		name    string
		manager int // version of ExecutionManager
		offsets map[string]uint32
	}{
		{"dotnet-10.0.9-linux-x64", 2, map[string]uint32{
			"RangeSectionMap.TopLevelData": 0, "RangeSectionFragment.RangeBegin": 8,
			"RangeSectionFragment.RangeSection": 24,
			"RangeSection.NextForDelete":        64, "RangeSection.HeapList": 40,
			"CodeHeapListNode.HeaderMap": 40,
			"RealCodeHeader.UnwindInfos": 36, "RuntimeFunction.!": 12, "Module.ReadyToRunInfo": 704,
			"Thread.OSId": 296, "Thread.LinkNext": 112}},
		{"dotnet-10.0.9-linux-arm64", 2, map[string]uint32{
			"RangeSection.NextForDelete": 56, "RuntimeFunction.!": 8,
			"Thread.OSId": 336, "Thread.LinkNext": 152}},
		{"dotnet-10.0.9-win-x64", 2, map[string]uint32{
			"ReadyToRunInfo.EntryPointToMethodDescMap": 336, "Module.Base": 200, "Thread.OSId": 304,
			"ThreadStore.FirstThreadLink": 64}},
		{"dotnet-9.0.5-linux-x64", 0,
			map[string]uint32{"Thread.OSId": 296, "Thread.LinkNext": 112, "Module.Base": 288}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := must.Get(ParseDescriptor(descriptorText(t, c.name)))(t)
			expect.Equal(t, d.Contracts["ExecutionManager"], c.manager, "ExecutionManager")
			for name, want := range c.offsets {
				typ, field, _ := strings.Cut(name, ".")
				got, ok := d.Offset(typ, field)
				expect.True(t, ok && got == want, "%s = %d %v, want %d", name, got, ok, want)
			}
		})
	}
}

// TestDescriptorForms: every form that data_descriptor.md allows gives the same descriptor. The runtime's own
// reader (ContractDescriptorParser) also accepts numbers in strings and commas before closing brackets.
func TestDescriptorForms(t *testing.T) {
	want := &Descriptor{Types: map[string]map[string]uint32{
		"GCHandle": {"!": 8, "Value": 0}, "Thread": {"ThreadId": 32, "Next": 128}, "Opaque": {}},
		Globals: map[string]Global{"Feature": {Value: 1}, "Mask": {Value: 1<<64 - 2}, "Ten": {Value: 10},
			"Store": {Indirect: true, Value: 3}, "Map": {Indirect: true, Value: 4}},
		Contracts: map[string]int{"Thread": 1, "GCHandle": 2}}
	for name, text := range map[string]string{
		"compact": `{"version":0,"types":{"GCHandle":{"!":8,"Value":[0,"pointer"]},
			"Thread":{"ThreadId":32,"Next":[128,"pointer"]},"Opaque":{}},"globals":{"Feature":["0x1","uint8"],
			"Mask":["0xfffffffffffffffe","nuint"],"Ten":10,"Store":[3],"Map":[[4],"pointer"],"RID":["a","string"]},
			"contracts":{"Thread":1,"GCHandle":2}}`,
		"numbers in strings": `{"version":"0","baseline":"empty","types":{"GCHandle":{"!":"8","Value":"0"},
			"Thread":{"ThreadId":"0x20","Next":["0X80","pointer"]},"Opaque":{}},"globals":{"Feature":"1",
			"Mask":"-0x2","Ten":"010","Store":["3"],"Map":[["0x4"],"pointer"]},
			"contracts":{"Thread":"1","GCHandle":"2"},"subDescriptors":{"GC":[[9],"pointer"]}}`,
		"comments": `// "compact" [
			{"version":0, /* "types": { */ "types":{"GCHandle":{"!":8,"Value":0,},"Thread":{"ThreadId":32, // id,
			"Next":[128,"pointer",],},"Opaque":{},},"globals":{"Feature":1,"Mask":-2,"Ten":10,"Store":[3,], /**/
			"Map":[[4,],"pointer"],"//\\\"":"/*",},"contracts":{"Thread":1,"GCHandle":2,/*,*/},} // end`,
		"regular": `{"types":[{"name":"GCHandle","size":8,"fields":[{"name":"Value","type":"pointer","offset":0}]},
			{"name":"Thread","size":"indeterminate","fields":[{"name":"ThreadId","type":"uint32","offset":32},
			{"name":"Next","type":"pointer","offset":128},{"name":"State","type":"uint32","offset":"unknown"},
			{"name":"Flags","type":"uint32"}]},{"name":"Opaque"}],"globals":[{"name":"Feature","type":"uint8",
			"value":"0x1"},{"name":"Mask","type":"nint","value":-2},{"name":"Ten","type":"uint8","value":10},
			{"name":"Store","type":"pointer","value":[3]},{"name":"Map","type":"pointer","value":[4]},
			{"name":"None","type":"pointer"},{"name":"Other","type":"pointer","value":"unknown"}],
			"contracts":{"Thread":1,"GCHandle":2}}`,
	} {
		d, err := ParseDescriptor([]byte(text))
		expect.True(t, err == nil && reflect.DeepEqual(d, want), "%s: %+v %v, want %+v", name, d, err, want)
	}
}

// TestBadDescriptors: a text that is no descriptor is an error, and an unknown version of a contract is not
// mistaken for an absent contract.
func TestBadDescriptors(t *testing.T) {
	for _, text := range []string{``, `{`, `[]`, `{"version":1}`, `{"version":"x"}`, `{"types":7}`,
		`{"types":[7]}`, `{"types":{"A":7}}`, `{"globals":true}`, `{} /`, `{} /* `, `{"types":{"A":{}`} {
		d, err := ParseDescriptor([]byte(text))
		expect.True(t, err != nil, "%q: %+v", text, d)
	}
	d := must.Get(ParseDescriptor([]byte(`{"contracts":{"A":"c1","B":-1,"C":4294967296}}`)))(t)
	expect.True(t, reflect.DeepEqual(d.Contracts, map[string]int{"A": -1, "B": -1, "C": -1}), "%+v", d)
}

// The first comment without an end ends the work: nothing behind it is read. Otherwise the end of each of
// many such comments would be searched in the whole rest.
func TestCommentWithoutEnd(t *testing.T) {
	text := "{/**/}" + strings.Repeat("/* ", 1000) + "[1,]"
	expect.Equal(t, string(plainJSON([]byte(text))), "{    }"+text[6:])
}

// TestSupposedLayout: the layout that is assumed for .NET 9 equals that of the .NET 10 descriptor.
func TestSupposedLayout(t *testing.T) {
	d := must.Get(ParseDescriptor(descriptorText(t, "dotnet-10.0.9-linux-x64")))(t)
	l, err := d.layout(functionSize(context.ArchAMD64))
	expect.True(t, err == nil && l == layout10, "%+v %v, want %+v", l, err, layout10)
	expect.Equal(t, d.Globals["ExecutionManagerCodeRangeMapAddress"], Global{Indirect: true, Value: 20},
		"ExecutionManagerCodeRangeMapAddress")
}

const (
	atDescriptor = 0x60_0000
	atText       = 0x60_1000
	atPointers   = 0x60_0800
	atDac        = 0x60_0900
)

// publish writes a descriptor's header, its text and its pointers.
func publish(f *fake, text []byte) {
	f.put(atDescriptor, []byte("DNCCDAC\x00")...)
	f.u32(atDescriptor+8, 1, uint32(len(text)))
	f.u64(atDescriptor+16, atText, 24, atPointers)
	f.put(atText, text...)
	f.zero(atPointers, 24*8)
	f.u64(atPointers+20*8, atTop)
	f.u64(atDac, atTop)
	f.slot(0, codeBase, atTop+0x1000)
}

func TestOpen(t *testing.T) {
	var wrong *Error
	for _, c := range []struct {
		name, text string
		spoil      func(f *fake)
		structure  string // of the error, empty for none
	}{
		{"10", "dotnet-10.0.9-linux-x64", func(f *fake) {}, ""},
		{"9", "dotnet-9.0.5-linux-x64", func(f *fake) {}, ""},
		{"other machine", "dotnet-10.0.9-linux-arm64", func(f *fake) {}, "contract descriptor"},
		{"magic", "dotnet-9.0.5-linux-x64", func(f *fake) { f.put(atDescriptor, 'X') },
			"contract descriptor header"},
		{"32 bits", "dotnet-9.0.5-linux-x64",
			func(f *fake) { f.u32(atDescriptor+8, 3) }, "contract descriptor flags"},
		{"size", "dotnet-9.0.5-linux-x64",
			func(f *fake) { f.u32(atDescriptor+12, ^uint32(0)) }, "contract descriptor size"},
		{"count", "dotnet-9.0.5-linux-x64", func(f *fake) { f.u32(atDescriptor+24, ^uint32(0)) },
			"contract descriptor pointer count"},
		{"text missing", "dotnet-9.0.5-linux-x64",
			func(f *fake) { f.u64(atDescriptor+16, ^uint64(100)) }, "contract descriptor text"},
		{"text cut", "dotnet-9.0.5-linux-x64",
			func(f *fake) { f.u32(atDescriptor+12, 100) }, "contract descriptor"},
		{"too few pointers", "dotnet-10.0.9-linux-x64", func(f *fake) { f.u32(atDescriptor+24, 20) },
			"global ExecutionManagerCodeRangeMapAddress"},
		{"map null", "dotnet-10.0.9-linux-x64", func(f *fake) { f.u64(atPointers+160, 0) }, "range map"},
		{"map is something else", "dotnet-9.0.5-linux-x64",
			func(f *fake) { f.u64(atDac, atText) }, "range map"},
		{"map is full", "dotnet-9.0.5-linux-x64", func(f *fake) {
			for i := range 256 {
				f.u64(atTop+8*uint64(i), atTop)
			}
		}, "range map"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := world(plain, c.name == "9")
			publish(f, descriptorText(t, c.text))
			c.spoil(f)
			tables, err := open(f, context.ArchAMD64, exports{desc: atDescriptor, dac: atDac})
			if c.structure != "" {
				expect.True(t, errors.As(err, &wrong) && wrong.Structure == c.structure &&
					wrong.Error() != "", "error %v, want of %q", err, c.structure)
				return
			}
			must.Do(t, err)
			var m Method
			r := tables.Find(mapBase+0x45, &m)
			expect.True(t, tables.Proven() != (r == Unproven), "proven %v, yet %v", tables.Proven(), r)
			tables.Confirm(mapBase+0x45, 0x5000)
			r = tables.Find(mapBase+0x205, &m)
			expect.True(t, r == Found && m.MethodDesc == 0x5010, "after Confirm: %v %+v", r, m)
		})
	}
	_, err := open(constant(0xff), context.ArchAMD64, exports{desc: atDescriptor, dac: atDac})
	expect.True(t, errors.As(err, &wrong), "memory of ones: %v", err)
}

func TestConfirm(t *testing.T) {
	for _, c := range []struct {
		name           string
		ip, function   uint64
		proven, denied bool
	}{
		{"agrees", mapBase + 0x45, 0x5000, true, false},
		{"another method", mapBase + 0x45, 0x5008, false, true},
		{"not there", codeEnd + 0x100, 0x5000, false, false},
		{"a stub", mapBase + 0x1350, 0x5000, false, false},
	} {
		tables := world(plain, true).tables(true)
		tables.proven = 0
		tables.Confirm(c.ip, c.function)
		expect.True(t, tables.Proven() == c.proven && tables.Refuted() == c.denied,
			"%s: proven %v, refuted %v", c.name, tables.Proven(), tables.Refuted())
	}
}
