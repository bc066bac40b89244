package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/store"
)

// sampleKeys is how many keys are dealt by both records.
const sampleKeys = 10_000

// dryRun is what a change would do.
type dryRun struct {
	DryRun   bool            `json:"dryRun"`
	Service  string          `json:"service"`
	Before   *routing.Record `json:"before"`
	After    *routing.Record `json:"after"`
	Changes  []difference    `json:"changes"`
	Moves    routing.Moves   `json:"moves"`
	Warnings []string        `json:"warnings,omitempty"`
}

// asStored is how what is stored, or has been checked, is compiled: the setting is
// about what may be stored anew, and a record from before it is shown as it is.
var asStored = routing.AllowLinkLocal()

// difference is one member that differs. Before or After is absent, as Op says.
type difference struct {
	Pointer string           `json:"pointer"`
	Op      string           `json:"op"` // add, remove or replace
	Before  *json.RawMessage `json:"before,omitempty"`
	After   *json.RawMessage `json:"after,omitempty"`
}

func newDryRun(service string, before *store.Stored, after *routing.Record) (*dryRun, error) {
	d := &dryRun{DryRun: true, Service: service, After: after, Warnings: warnings(after, time.Now())}
	if before != nil {
		d.Before = before.Record // nil when it is broken
	}
	from, err := routing.Compile(d.Before, nil, asStored)
	if err != nil {
		return nil, fmt.Errorf("compiling the stored record: %w", err)
	}
	to, err := routing.Compile(after, nil, asStored)
	if err != nil {
		return nil, err
	}
	d.Moves = routing.CountMoves(from, to, sampleKeys)
	d.Changes, err = differences(d.Before, after)
	return d, err
}

// differences compares two documents of one type member by member, arrays by place;
// nil is none.
func differences[T any](before, after *T) ([]difference, error) {
	x, err := generic(before)
	if err != nil {
		return nil, err
	}
	y, err := generic(after)
	if err != nil {
		return nil, err
	}
	c := comparison{list: []difference{}}
	c.values("", x, y)
	return c.list, c.err
}

// generic is a document as JSON sees it, with null as jsonNull; nil is absent.
func generic[T any](document *T) (any, error) {
	if document == nil {
		return nil, nil
	}
	data, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err = d.Decode(&v)
	return withNulls(v), err
}

// jsonNull is a member that is there and null, where nil is one that is absent.
type jsonNull struct{}

// MarshalJSON implements json.Marshaler.
func (jsonNull) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// withNulls puts jsonNull in the place of each nil in a decoded value.
func withNulls(v any) any {
	switch v := v.(type) {
	case nil:
		return jsonNull{}
	case map[string]any:
		for name, value := range v {
			v[name] = withNulls(value)
		}
	case []any:
		for i, value := range v {
			v[i] = withNulls(value)
		}
	}
	return v
}

// comparison collects differences.
type comparison struct {
	list []difference
	err  error
}

func (c *comparison) values(pointer string, x, y any) {
	switch {
	case reflect.DeepEqual(x, y):
	case x == nil:
		c.add(pointer, "add", nil, y)
	case y == nil:
		c.add(pointer, "remove", x, nil)
	default:
		c.bothThere(pointer, x, y)
	}
}

func (c *comparison) bothThere(pointer string, x, y any) {
	if a, ok := x.(map[string]any); ok {
		if b, ok := y.(map[string]any); ok {
			names := maps.Clone(a)
			maps.Copy(names, b)
			for _, name := range slices.Sorted(maps.Keys(names)) {
				c.values(pointer+pointerTo(name), a[name], b[name])
			}
			return
		}
	}
	if a, ok := x.([]any); ok {
		if b, ok := y.([]any); ok {
			for i := range max(len(a), len(b)) {
				c.values(pointer+"/"+strconv.Itoa(i), at(a, i), at(b, i))
			}
			return
		}
	}
	c.add(pointer, "replace", x, y)
}

func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

func (c *comparison) add(pointer, op string, x, y any) {
	d := difference{Pointer: pointer, Op: op}
	d.Before, d.After = c.raw(x), c.raw(y)
	c.list = append(c.list, d)
}

func (c *comparison) raw(v any) *json.RawMessage {
	if v == nil {
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		c.err = err
	}
	return (*json.RawMessage)(&data)
}
