package config

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// update rewrites the table of settings: go test ./internal/config -update
var update = flag.Bool("update", false, "rewrite the table in docs/configuration.md")

const (
	documentFile = "../../../docs/configuration.md"
	tableBegin   = "<!-- The table is made from config.go: cd gateway && go test ./internal/config -update -->\n"
	tableEnd     = "<!-- End of the table. -->\n"
)

func TestTheDocumentListsEverySetting(t *testing.T) {
	text, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	table, after, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		t.Fatalf("%s lacks the lines around its table", documentFile)
	}
	want := settingsTable(t)
	if *update {
		text := before + tableBegin + want + tableEnd + after
		if err := os.WriteFile(documentFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Errorf("the table in %s is not that of config.go; run the test with -update", documentFile)
	}
}

// TestEverySettingIsDocumented keeps to what a comment must say: the default.
func TestEverySettingIsDocumented(t *testing.T) {
	t.Parallel()
	comments := fieldComments(t)
	var check func(typ reflect.Type)
	check = func(typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			comment := comments[typ.Name()+"."+f.Name]
			if comment == "" {
				t.Errorf("%s.%s has no comment", typ.Name(), f.Name)
			}
			if f.Type.Kind() == reflect.Struct && !isScalar(f.Type) {
				if f.Tag.Get("yaml") != "-" {
					check(f.Type)
				}
				continue
			}
			if typ == reflect.TypeFor[RouteTimeouts]() || f.Type.Kind() == reflect.Map && f.Name == "Instances" || f.Name == "Routes" {
				continue // as elsewhere, or explained as a whole
			}
			if !strings.Contains(comment, "efault") && !strings.Contains(comment, "Required") && !strings.Contains(comment, "Absent") {
				t.Errorf("%s.%s: the comment does not tell the default: %s", typ.Name(), f.Name, comment)
			}
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[Config](), reflect.TypeFor[Route](), reflect.TypeFor[Instance]()} {
		check(typ)
	}
}

func TestTheExampleOfTheDocumentCanBeUsed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "```yaml\n")
	example, _, ended := strings.Cut(rest, "```\n")
	if !ok || !ended {
		t.Fatalf("%s has no example", documentFile)
	}
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(file, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load([]string{"--config", file}, nil); err != nil {
		t.Error(err)
	}
}

// fieldComments returns the comments of the fields in config.go, by Type.Field.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := make(map[string]string)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		fields, ok := spec.Type.(*ast.StructType)
		if !ok {
			return false
		}
		shared := ""
		for _, f := range fields.Fields.List {
			text := strings.Join(strings.Fields(f.Doc.Text()), " ")
			if text == "" {
				text = shared // one comment for several fields
			}
			shared = text
			for _, name := range f.Names {
				comments[spec.Name.Name+"."+name.Name] = text
			}
		}
		return false
	})
	return comments
}

// settingsTable is the table of all settings.
func settingsTable(t *testing.T) string {
	t.Helper()
	comments := fieldComments(t)
	var b strings.Builder
	b.WriteString("| setting | default | environment | flag | meaning |\n| --- | --- | --- | --- | --- |\n")
	defaults := Default()
	var rows func(typ reflect.Type, v reflect.Value, path string, top bool)
	rows = func(typ reflect.Type, v reflect.Value, path string, top bool) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			at := join(path, f.Tag.Get("yaml"))
			if f.Tag.Get("yaml") == "-" {
				continue
			}
			var value reflect.Value
			if v.IsValid() {
				value = v.Field(i)
			}
			if f.Type.Kind() == reflect.Struct && !isScalar(f.Type) {
				rows(f.Type, value, at, top)
				continue
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", at, defaultText(value), sources(at, value, top), cell(comments[typ.Name()+"."+f.Name]))
			switch at {
			case "routes":
				rows(reflect.TypeFor[Route](), reflect.Value{}, "routes[]", false)
			case "instances":
				rows(reflect.TypeFor[Instance](), reflect.Value{}, "instances.NAME[]", false)
			}
		}
	}
	rows(reflect.TypeFor[Config](), reflect.ValueOf(&defaults).Elem(), "", true)
	return b.String()
}

// sources are the cells of the environment variable and the flag.
func sources(path string, value reflect.Value, top bool) string {
	if !top {
		return " | "
	}
	s := setting{path, value}
	if s.flag() == "" {
		return "`" + s.variable() + "` (YAML) | "
	}
	return "`" + s.variable() + "` | `--" + s.flag() + "`"
}

// defaultText is the cell of a default; it is empty where there is none.
func defaultText(v reflect.Value) string {
	if !v.IsValid() || v.IsZero() && v.Kind() != reflect.Bool && v.Kind() != reflect.Int && v.Kind() != reflect.Int64 {
		return ""
	}
	if v.Kind() == reflect.Slice {
		var parts []string
		for i := range v.Len() {
			parts = append(parts, scalarText(v.Index(i)))
		}
		return "`" + strings.Join(parts, ", ") + "`"
	}
	return "`" + scalarText(v) + "`"
}

func cell(comment string) string { return strings.ReplaceAll(comment, "|", `\|`) }

// scalarText is the inverse of setScalar.
func scalarText(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case Bytes:
		if x > 0 && x%(1<<10) == 0 {
			return fmt.Sprintf("%dKiB", x>>10)
		}
		return strconv.FormatInt(int64(x), 10)
	case time.Duration:
		return shortDuration(x)
	case slog.Level:
		return strings.ToLower(x.String())
	default:
		return fmt.Sprint(x)
	}
}

// shortDuration is d without the zero minutes and seconds that String appends.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
