package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// document sets value, the setting at path, from YAML text. The YAML library
// parses; its decoder is not used, because it stops at the first mistake,
// converts types in silence and loses the place of what it refuses.
func (d *draft) document(source, path string, text []byte, value reflect.Value) {
	top := origin{source: source}
	if line := nestedAt(text); line > 0 {
		top.line = line
		d.origins[path] = top
		d.mistake(path, "is nested more than %d deep", nestingMost)
		return
	}
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntaxMistake(source, path, err)
		return
	}
	reader := documentReader{draft: d, source: source}
	bodies := 0
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if bodies++; bodies > 1 {
			top.line = doc.Body.GetToken().Position.Line
			d.origins[path] = top
			d.mistake(path, "a second document; there must be one only")
			return
		}
		reader.value(doc.Body, value, path)
	}
}

func (d *draft) syntaxMistake(source, path string, err error) {
	m := Mistake{Source: source, Path: path, Detail: err.Error()}
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		m.Line, m.Detail = at.GetToken().Position.Line, at.GetMessage()
	}
	d.mistakes = append(d.mistakes, m)
}

// documentReader walks one YAML document and the settings side by side.
type documentReader struct {
	draft  *draft
	source string
}

// value sets v, the setting at path, from node.
func (r documentReader) value(node ast.Node, v reflect.Value, path string) {
	r.draft.origins[path] = origin{r.source, node.GetToken().Position.Line}
	switch n := node.(type) {
	case *ast.NullNode:
		r.draft.mistake(path, "has no value")
		return
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		r.draft.mistake(path, "anchors, aliases and tags are not understood here")
		return
	case *ast.MappingValueNode: // a mapping of one key
		node = ast.Mapping(n.GetToken(), false, n)
	}
	t := v.Type()
	switch {
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		r.value(node, v.Elem(), path)
	case isScalar(t):
		r.scalar(node, v, path)
	case t.Kind() == reflect.Struct:
		r.structure(node, v, path)
	case t.Kind() == reflect.Map:
		r.mapping(node, v, path)
	case t.Kind() == reflect.Slice:
		r.sequence(node, v, path)
	default:
		panic("config: no way to read a setting of type " + t.String())
	}
}

func (r documentReader) scalar(node ast.Node, v reflect.Value, path string) {
	text, ok := scalarSource(node)
	if !ok {
		r.draft.mistake(path, "must be a plain value")
		return
	}
	if err := setScalar(v, text); err != nil {
		r.draft.mistake(path, "%s", err)
	}
}

// scalarSource returns a scalar as it is written, so that a version 1.10 stays
// one and does not become the number 1.1.
func scalarSource(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func (r documentReader) structure(node ast.Node, v reflect.Value, path string) {
	fields := make(map[string]reflect.Value)
	for i := range v.NumField() {
		if key := v.Type().Field(i).Tag.Get("yaml"); key != "-" {
			fields[key] = v.Field(i)
		}
	}
	r.entries(node, path, func(key string, value ast.Node) {
		at := join(path, key)
		field, ok := fields[key]
		if !ok {
			r.draft.mistake(at, "unknown setting%s", nearest(key, fields))
			return
		}
		r.value(value, field, at)
	})
}

func (r documentReader) mapping(node ast.Node, v reflect.Value, path string) {
	m := reflect.MakeMap(v.Type())
	r.entries(node, path, func(key string, value ast.Node) {
		element := reflect.New(v.Type().Elem()).Elem()
		r.value(value, element, join(path, key))
		m.SetMapIndex(reflect.ValueOf(key), element)
	})
	v.Set(m)
}

// entries calls each with the entries of a mapping, and refuses a node that is
// none, keys that are no plain words, and keys that come twice.
func (r documentReader) entries(node ast.Node, path string, each func(key string, value ast.Node)) {
	mapping, ok := node.(*ast.MappingNode)
	if !ok {
		r.draft.mistake(path, "must be a mapping of keys to values")
		return
	}
	seen := make(map[string]int)
	for _, entry := range mapping.Values {
		token := entry.Key.GetToken()
		key, plain := scalarSource(entry.Key)
		at := join(path, key)
		if first, twice := seen[key]; plain && twice {
			r.draft.origins[at] = origin{r.source, token.Position.Line}
			r.draft.mistake(at, "given twice, first in line %d", first)
			continue
		}
		r.draft.origins[at] = origin{r.source, token.Position.Line}
		if !plain {
			r.draft.mistake(path, "line %d: a key must be a plain word", token.Position.Line)
			continue
		}
		seen[key] = token.Position.Line
		each(key, entry.Value)
	}
}

// sequence reads a list. A list of plain values may be written as its only one.
func (r documentReader) sequence(node ast.Node, v reflect.Value, path string) {
	nodes := []ast.Node{node}
	if list, ok := node.(*ast.SequenceNode); ok {
		nodes = list.Values
	} else if !isScalar(v.Type().Elem()) {
		r.draft.mistake(path, "must be a list")
		return
	}
	list := reflect.MakeSlice(v.Type(), len(nodes), len(nodes))
	for i, n := range nodes {
		r.value(n, list.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(list)
}

// join appends a key to a path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// nearest suggests the setting that an unknown key differs from in case only.
func nearest(key string, fields map[string]reflect.Value) string {
	for known := range fields {
		if strings.EqualFold(known, key) {
			return "; it is written " + known
		}
	}
	return ""
}
