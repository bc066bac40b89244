package strictjson_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"specialroutes.example/services/strictjson"
)

type inner struct {
	Host string           `json:"host"`
	Tags []string         `json:"tags,omitzero"`
	Map  map[string]int64 `json:"map,omitzero"`
}

type document struct {
	Name   string  `json:"name"`
	Weight *int64  `json:"weight,omitzero"`
	Small  int8    `json:"small,omitzero"`
	Count  uint32  `json:"count,omitzero"`
	Active *bool   `json:"active,omitzero"`
	Inner  *inner  `json:"inner,omitzero"`
	List   []inner `json:"list,omitzero"`
}

func TestDecode_Refuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, data, pointer, detail string }{
		{"nothing", ``, "", "is empty"},
		{"white space", " \n\t", "", "is empty"},
		{"half a document", `{"name":"x"`, "", "ends too early"},
		{"half a string", `{"name":"x`, "/name", "ends too early"},
		{"no JSON", `name: x`, "", "is not JSON"},
		{"NaN", `{"weight":NaN}`, "/weight", "is not JSON"},
		{"a comment", `{"name":"x"} // y`, "", "is followed by more data"},
		{"a second document", `{"name":"x"}{}`, "", "is followed by more data"},
		{"a bracket too many", `{"name":"x"}}`, "", "is followed by more data"},
		{"a trailing comma", `{"name":"x",}`, "", "is not JSON"},
		{"a byte order mark", "\xef\xbb\xbf{}", "", "is not JSON"},
		{"invalid UTF-8", "{\"name\":\"\xff\"}", "/name", "is not JSON"},
		{"half a surrogate pair", `{"name":"\ud800"}`, "/name", "is not JSON"},
		{"null for the document", `null`, "", "is null"},
		{"null for a string", `{"name":null}`, "/name", "is null"},
		{"null for a pointer", `{"weight":null}`, "/weight", "is null"},
		{"null in a list", `{"list":[{"host":"a","tags":["x",null]}]}`, "/list/0/tags/1", "is null"},
		{"null in a map", `{"inner":{"map":{"a/b":null}}}`, "/inner/map/a~1b", "is null"},
		{"null in an unknown member", `{"other":[null]}`, "/other/0", "is null"},
		{"a name twice", `{"weight":1,"weight":99}`, "/weight", "occurs twice"},
		{"a name twice, once escaped", `{"weight":1,"w\u0065ight":99}`, "/weight", "occurs twice"},
		{"a name twice inside", `{"inner":{"map":{"a":1,"a":1}}}`, "/inner/map/a", "occurs twice"},
		{"an unknown name", `{"weigth":5}`, "/weigth", "is not a known member"},
		{"an unknown name inside", `{"list":[{},{"x":1}]}`, "/list/1/x", "is not a known member"},
		{"another case", `{"Weight":5}`, "/Weight", "is not a known member; it is spelt weight"},
		{"another case beside the right one", `{"weight":1,"WEIGHT":99}`, "/WEIGHT", "it is spelt weight"},
		{"a letter that folds", `{"inner":{"ho\u017ft":"x"}}`, "/inner/hoſt", "is not a known member"},
		{"a fraction", `{"weight":1.5}`, "/weight", "must be an integer"},
		{"a fraction of nothing", `{"weight":1.0}`, "/weight", "must be an integer"},
		{"an exponent", `{"weight":1e2}`, "/weight", "must be an integer"},
		{"a fraction in a map", `{"inner":{"map":{"a":0.5}}}`, "/inner/map/a", "must be an integer"},
		{"above 64 bits", `{"weight":9223372036854775808}`, "/weight", "is out of range"},
		{"below 64 bits", `{"weight":-9223372036854775809}`, "/weight", "is out of range"},
		{"above 8 bits", `{"small":128}`, "/small", "is out of range"},
		{"below nought without a sign", `{"count":-1}`, "/count", "must be an integer"},
		{"a string for a number", `{"weight":"5"}`, "/weight", "must be an integer, not a string"},
		{"a number for a string", `{"name":5}`, "/name", "must be a string, not a number"},
		{"a number for a boolean", `{"active":1}`, "/active", "must be true or false, not a number"},
		{"a list for an object", `{"inner":[]}`, "/inner", "must be an object, not a list"},
		{"an object for a list", `{"list":{}}`, "/list", "must be a list, not an object"},
		{"a list for the document", `[]`, "", "must be an object, not a list"},
		{"depth", strings.Repeat("[", 100_000), "", "is not JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var d document
			err := strictjson.Decode([]byte(tt.data), &d)
			var refused *strictjson.Error
			if !errors.As(err, &refused) {
				t.Fatalf("Decode(%.80s) = %v, want a *strictjson.Error", tt.data, err)
			}
			deep := tt.name == "depth" // whose pointer is as long as the document is deep
			if (refused.Pointer != tt.pointer && !deep) || !strings.Contains(refused.Detail, tt.detail) {
				t.Errorf("Decode(%.80s) = %q %q, want %q and %q", tt.data, refused.Pointer, refused.Detail, tt.pointer, tt.detail)
			}
			if strings.Contains(refused.Detail, "Go ") {
				t.Errorf("Detail %q speaks of Go", refused.Detail)
			}
		})
	}
}

func TestDecode_TakesWhatIsClear(t *testing.T) {
	t.Parallel()
	var d document
	err := strictjson.Decode([]byte(" {\"name\":\"\\u00e9\",\"weight\":9223372036854775807,\"small\":-128,"+
		"\"active\":false,\"inner\":{\"host\":\"\",\"tags\":[],\"map\":{}}}\n"), &d)
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != "é" || *d.Weight != 1<<63-1 || d.Small != -128 || *d.Active || d.List != nil {
		t.Errorf("Decode read %+v", d)
	}
	if d.Inner.Tags == nil || d.Inner.Map == nil {
		t.Errorf("an empty list or object was read as absent: %+v", d.Inner)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{}`, `null`, `{"name":"x","weight":5}`, `{"list":[{"host":"a","map":{"b":1}}]}`, `{"weight":1e3}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var d document
		err := strictjson.Decode(data, &d)
		var refused *strictjson.Error
		if err != nil && !errors.As(err, &refused) {
			t.Fatalf("Decode(%q) = %T", data, err)
		}
		if err != nil {
			return
		}
		var loose document
		if err := json.Unmarshal(data, &loose); err != nil {
			t.Errorf("Decode(%q) took what encoding/json refuses: %v", data, err)
		}
	})
}
