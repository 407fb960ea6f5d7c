// Package otlp encodes OpenTelemetry profiles as protocol buffers and as JSON.
//
// Sources: open-telemetry/opentelemetry-proto opentelemetry/proto/profiles/v1development
// (version 1.11), common/v1, and resource/v1; docs/specification.md of the same, section JSON
// Protobuf Encoding; protobuf.dev/programming-guides/encoding.
//
// Glossary. The dictionary holds tables of all that repeats, and other messages have indices
// into it. A resource is a process, and a scope is the tool that made its profiles.
//
// Strategy. The messages are structs. The tag pb of a field is its number, and the type of a
// field chooses its wire type: Fixed is fixed64, other integers are varints, lists of numbers
// are packed. A field with its zero value is omitted. A pointer to a zero value is written.
//
// Known gaps: only the fields that seedwalk writes are here.
package otlp

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strconv"
)

// Data is ProfilesData, and the request of the export service, which has the same fields.
type Data struct {
	Resources  []ResourceProfiles `pb:"1" json:"resourceProfiles,omitempty"`
	Dictionary Dictionary         `pb:"2" json:"dictionary"`
}

// Dictionary has the tables that everything else refers to. Index 0 of each is its zero value.
type Dictionary struct {
	Mappings   []Mapping         `pb:"1" json:"mappingTable,omitempty"`
	Locations  []Location        `pb:"2" json:"locationTable,omitempty"`
	Functions  []Function        `pb:"3" json:"functionTable,omitempty"`
	Links      []Link            `pb:"4" json:"linkTable,omitempty"`
	Strings    []string          `pb:"5" json:"stringTable,omitempty"`
	Attributes []KeyValueAndUnit `pb:"6" json:"attributeTable,omitempty"`
	Stacks     []Stack           `pb:"7" json:"stackTable,omitempty"`
}

// Link is the span that a sample belongs to.
type Link struct {
	Trace Hex `pb:"1" json:"traceId,omitempty"`
	Span  Hex `pb:"2" json:"spanId,omitempty"`
}

// ResourceProfiles are the profiles of one process.
type ResourceProfiles struct {
	Resource Resource        `pb:"1" json:"resource"`
	Scopes   []ScopeProfiles `pb:"2" json:"scopeProfiles,omitempty"`
}

// Resource describes a process.
type Resource struct {
	Attributes []KeyValue `pb:"1" json:"attributes,omitempty"`
}

// KeyValue is an attribute outside the dictionary.
type KeyValue struct {
	Key   string `pb:"1" json:"key"`
	Value Value  `pb:"2" json:"value"`
}

// Value is one of its fields.
type Value struct {
	String *string `pb:"1" json:"stringValue,omitempty"`
	Bool   *bool   `pb:"2" json:"boolValue,omitempty"`
	Int    *int64  `pb:"3" json:"intValue,omitempty,string"`
}

// ScopeProfiles are the profiles of one tool.
type ScopeProfiles struct {
	Scope    Scope     `pb:"1" json:"scope"`
	Profiles []Profile `pb:"2" json:"profiles,omitempty"`
}

// Scope is a tool.
type Scope struct {
	Name string `pb:"1" json:"name,omitempty"`
}

// Profile has the values of one type.
type Profile struct {
	Type       ValueType `pb:"1" json:"sampleType"`
	Samples    []Sample  `pb:"2" json:"samples,omitempty"`
	Time       Fixed     `pb:"3" json:"timeUnixNano,omitempty"`
	Duration   uint64    `pb:"4" json:"durationNano,omitempty,string"`
	PeriodType ValueType `pb:"5" json:"periodType"`
	Period     int64     `pb:"6" json:"period,omitempty,string"`
	ID         Hex       `pb:"7" json:"profileId,omitempty"`
	Attributes []int32   `pb:"11" json:"attributeIndices,omitempty"`
}

// ValueType is a type and its unit, both in the string table.
type ValueType struct {
	Type int32 `pb:"1" json:"typeStrindex,omitempty"`
	Unit int32 `pb:"2" json:"unitStrindex,omitempty"`
}

// Sample has one value of a stack, or one value for each of its times.
type Sample struct {
	Stack      int32   `pb:"1" json:"stackIndex,omitempty"`
	Attributes []int32 `pb:"2" json:"attributeIndices,omitempty"`
	Link       int32   `pb:"3" json:"linkIndex,omitempty"`
	Values     []Int   `pb:"4" json:"values,omitempty"`
	Times      []Fixed `pb:"5" json:"timestampsUnixNano,omitempty"`
}

// Mapping is a mapped image.
type Mapping struct {
	Start      uint64  `pb:"1" json:"memoryStart,omitempty,string"`
	Limit      uint64  `pb:"2" json:"memoryLimit,omitempty,string"`
	Offset     uint64  `pb:"3" json:"fileOffset,omitempty,string"`
	File       int32   `pb:"4" json:"filenameStrindex,omitempty"`
	Attributes []int32 `pb:"5" json:"attributeIndices,omitempty"`
}

// Stack lists locations, leaf first.
type Stack struct {
	Locations []int32 `pb:"1" json:"locationIndices,omitempty"`
}

// Location is a frame. One without lines has no name yet.
type Location struct {
	Mapping    int32   `pb:"1" json:"mappingIndex,omitempty"`
	Address    uint64  `pb:"2" json:"address,omitempty,string"`
	Lines      []Line  `pb:"3" json:"lines,omitempty"`
	Attributes []int32 `pb:"4" json:"attributeIndices,omitempty"`
}

// Line is a place in a function.
type Line struct {
	Function int32 `pb:"1" json:"functionIndex,omitempty"`
	Line     int64 `pb:"2" json:"line,omitempty,string"`
}

// Function has its names and its file in the string table.
type Function struct {
	Name       int32 `pb:"1" json:"nameStrindex,omitempty"`
	SystemName int32 `pb:"2" json:"systemNameStrindex,omitempty"`
	File       int32 `pb:"3" json:"filenameStrindex,omitempty"`
}

// KeyValueAndUnit is an attribute in the dictionary.
type KeyValueAndUnit struct {
	Key   int32 `pb:"1" json:"keyStrindex,omitempty"`
	Value Value `pb:"2" json:"value"`
}

// Fixed is a fixed64. Int is an int64 in a list. JSON has both as strings.
type (
	Fixed uint64
	Int   int64
)

// MarshalText makes the text of JSON.
func (f Fixed) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(f), 10), nil }

// MarshalText makes the text of JSON.
func (i Int) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(i), 10), nil }

// Hex is bytes that JSON has in hexadecimal.
type Hex []byte

// MarshalText makes the text of JSON.
func (h Hex) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h), nil }

// JSON encodes data.
func JSON(d *Data) ([]byte, error) { return json.Marshal(d) }

// Marshal encodes a message, given as a pointer to one of the structs above.
func Marshal(message any) []byte { return appendMessage(nil, reflect.ValueOf(message).Elem()) }

const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
)

func appendMessage(b []byte, v reflect.Value) []byte {
	t := v.Type()
	for i := range t.NumField() {
		number, err := strconv.ParseUint(t.Field(i).Tag.Get("pb"), 10, 29)
		if err != nil {
			panic("otlp: no field number in " + t.String()) // a mistake in the types above
		}
		if f := v.Field(i); !f.IsZero() {
			b = appendField(b, number, f)
		}
	}
	return b
}

// appendField encodes a field that is present.
func appendField(b []byte, number uint64, v reflect.Value) []byte {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	var content []byte
	switch k := v.Kind(); {
	case k == reflect.String:
		content = []byte(v.String())
	case k == reflect.Struct:
		content = appendMessage(nil, v)
	case k == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		content = v.Bytes()
	case k == reflect.Slice && isNumber(v.Type().Elem()):
		for i := range v.Len() {
			content = appendNumber(content, v.Index(i))
		}
	case k == reflect.Slice:
		for i := range v.Len() {
			b = appendField(b, number, v.Index(i))
		}
		return b
	case v.Type() == reflect.TypeFor[Fixed]():
		return appendNumber(binary.AppendUvarint(b, number<<3|wireFixed64), v)
	default:
		return appendNumber(binary.AppendUvarint(b, number<<3|wireVarint), v)
	}
	b = binary.AppendUvarint(b, number<<3|wireBytes)
	return append(binary.AppendUvarint(b, uint64(len(content))), content...)
}

func isNumber(t reflect.Type) bool {
	return t.Kind() != reflect.Struct && t.Kind() != reflect.String
}

func appendNumber(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Int32, reflect.Int64:
		return binary.AppendUvarint(b, uint64(v.Int()))
	}
	if v.Type() == reflect.TypeFor[Fixed]() {
		return binary.LittleEndian.AppendUint64(b, v.Uint())
	}
	return binary.AppendUvarint(b, v.Uint())
}
