package metadata

// schema lists the columns of each table by its number: the tables of ECMA-335 (6th edition,
// II.22), and the tables of debugging metadata that source lines need. A column is one of
//
//	2 4      that many bytes
//	s g b    an index into #Strings, #GUID, #Blob
//	t + hex  an index into the table of that number
//	c + A-M  a coded index (II.24.2.6), see coded
var schema = [...]string{
	0x00: "2 s g g g", 0x01: "cL s s", 0x02: "4 s s cA t04 t06", 0x03: "t04", 0x04: "2 s b", 0x05: "t06",
	0x06: "4 2 2 s b t08", 0x07: "t08", 0x08: "2 2 s", 0x09: "t02 cA", 0x0a: "cF s b", 0x0b: "2 cB b",
	0x0c: "cC cK b", 0x0d: "cD b", 0x0e: "2 cE b", 0x0f: "2 4 t02", 0x10: "4 t04", 0x11: "b",
	0x12: "t02 t14", 0x13: "t14", 0x14: "2 s cA", 0x15: "t02 t17", 0x16: "t17", 0x17: "2 s b",
	0x18: "2 t06 cG", 0x19: "t02 cH cH", 0x1a: "s", 0x1b: "b", 0x1c: "2 cI s t1a", 0x1d: "4 t04",
	0x1e: "4 4", 0x1f: "4", 0x20: "4 2 2 2 2 4 b s s", 0x21: "4", 0x22: "4 4 4", 0x23: "2 2 2 2 4 b s s b",
	0x24: "4 t23", 0x25: "4 4 4 t23", 0x26: "4 s b", 0x27: "4 4 s s cJ", 0x28: "4 4 s cJ",
	0x29: "t02 t02", 0x2a: "2 2 cM s",
	0x2b: "cH b", 0x2c: "t2a cA", 0x30: "b g b g", 0x31: "t30 b",
}

// coded is a coded index: the bits of its tag and the tables it may point to.
type coded struct {
	bits   int
	tables []int
}

var codes = map[byte]coded{
	'A': {2, []int{0x02, 0x01, 0x1b}}, // TypeDefOrRef
	'B': {2, []int{0x04, 0x08, 0x17}}, // HasConstant
	'C': {5, []int{0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20,
		0x23, 0x26, 0x27, 0x28, 0x2a, 0x2c, 0x2b}},
	'D': {1, []int{0x04, 0x08}},                   // HasFieldMarshal
	'E': {2, []int{0x02, 0x06, 0x20}},             // HasDeclSecurity
	'F': {3, []int{0x02, 0x01, 0x1a, 0x06, 0x1b}}, // MemberRefParent
	'G': {1, []int{0x14, 0x17}},                   // HasSemantics
	'H': {1, []int{0x06, 0x0a}},                   // MethodDefOrRef
	'I': {1, []int{0x04, 0x06}},                   // MemberForwarded
	'J': {2, []int{0x26, 0x23, 0x27}},             // Implementation
	'K': {3, []int{0x06, 0x0a}},                   // CustomAttributeType
	'L': {2, []int{0x00, 0x1a, 0x23, 0x01}},       // ResolutionScope
	'M': {1, []int{0x02, 0x06}},                   // TypeOrMethodDef
}

const (
	tableModule          = 0x00
	tableTypeRef         = 0x01
	tableTypeDef         = 0x02
	tableField           = 0x04
	tableMethodPtr       = 0x05
	tableMethodDef       = 0x06
	tableMemberRef       = 0x0a
	tableCustomAttribute = 0x0c
	tableTypeSpec        = 0x1b
	tableAssembly        = 0x20
	tableNestedClass     = 0x29
	tableGenericParam    = 0x2a
	tableMethodSpec      = 0x2b
	tableDocument        = 0x30
	tableMethodDebug     = 0x31
)
