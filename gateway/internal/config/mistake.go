package config

import (
	"fmt"
	"strings"
)

// Mistake is one thing that is wrong in the settings.
type Mistake struct {
	Source string // the file's name, "environment GATEWAY_X" or "flag --x"
	Line   int    // in the source, from 1; 0 where there is none
	Path   string // of the field, as in routes[0].prefix; "" is the whole source
	Detail string
}

// String is the mistake on one line: source, line, field, what is wrong.
func (m Mistake) String() string {
	var b strings.Builder
	b.WriteString(m.Source)
	if m.Line > 0 {
		fmt.Fprintf(&b, ":%d", m.Line)
	}
	if m.Path != "" {
		b.WriteString(": " + m.Path)
	}
	return b.String() + ": " + m.Detail
}

// InvalidError says that the settings cannot be used, with every mistake found.
type InvalidError struct {
	Mistakes []Mistake
}

// Error lists the mistakes, one a line.
func (e *InvalidError) Error() string {
	if len(e.Mistakes) == 1 {
		return "invalid configuration: " + e.Mistakes[0].String()
	}
	lines := make([]string, len(e.Mistakes))
	for i, m := range e.Mistakes {
		lines[i] = m.String()
	}
	return "invalid configuration\n  " + strings.Join(lines, "\n  ")
}

// origin is the place that a setting came from.
type origin struct {
	source string
	line   int
}

// draft is a Config while it is put together: the values so far, where each came
// from, and the mistakes found.
type draft struct {
	config   Config
	origins  map[string]origin // by path
	mistakes []Mistake
}

// mistake notes what is wrong with the setting at path, at the place that it, or
// else the nearest thing around it, came from. Of one setting, or of one and what
// is inside it, only the first mistake is noted: the others follow from it.
func (d *draft) mistake(path, format string, args ...any) {
	for _, m := range d.mistakes {
		if m.Path == "" || m.Path == path || strings.HasPrefix(path, m.Path+".") || strings.HasPrefix(path, m.Path+"[") {
			return
		}
	}
	o := d.origin(path)
	d.mistakes = append(d.mistakes, Mistake{
		Source: o.source, Line: o.line, Path: path, Detail: fmt.Sprintf(format, args...),
	})
}

// origin returns where the setting at path came from. A setting that is absent
// has the place of what it is absent from.
func (d *draft) origin(path string) origin {
	for path != "" {
		if o, ok := d.origins[path]; ok {
			return o
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return d.origins[""]
}

// sets reports whether a source says anything of the setting at path.
func (d *draft) sets(path string) bool {
	_, ok := d.origins[path]
	return ok
}

// forget removes what is known of the origin of everything below path, because
// another source replaces it whole.
func (d *draft) forget(path string) {
	for p := range d.origins {
		if strings.HasPrefix(p, path+".") || strings.HasPrefix(p, path+"[") {
			delete(d.origins, p)
		}
	}
}
