package export

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
)

// tags collects the names of a type's JSON fields, including those of nested types.
func tags(t reflect.Type, into map[string]bool) {
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer:
		tags(t.Elem(), into)
	case reflect.Struct:
		for f := range t.Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				into[name] = true
			}
			tags(f.Type, into)
		}
	}
}

// docs/json.md names every field of the file.
func TestSchemaIsDocumented(t *testing.T) {
	doc := must.Get(os.ReadFile("../../docs/json.md"))(t)
	all := map[string]bool{}
	tags(reflect.TypeFor[jsonFile](), all)
	if len(all) < 40 {
		t.Fatalf("only %d fields", len(all))
	}
	for name := range all {
		if !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("docs/json.md does not name %s", name)
		}
	}
}

// The file begins with the same fields as the line of record --json.
func TestOneSchema(t *testing.T) {
	var file, line map[string]json.RawMessage
	b := must.Get(json.Marshal(NewRecording("seedwalk-recording", handMade())))(t)
	must.Do(t, json.Unmarshal(b, &line))
	must.Do(t, json.Unmarshal(written(t, WriteJSON, handMade()), &file))
	delete(line, "format")
	for name, value := range line {
		if string(file[name]) != string(value) {
			t.Errorf("%s: %s in the file, %s in the line", name, file[name], value)
		}
	}
}
