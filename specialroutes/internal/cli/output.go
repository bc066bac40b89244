package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
)

// output is the form in which a command prints what it found.
type output string

const (
	outputTable output = "table"
	outputJSON  output = "json"
)

// Set, String and Type make it a flag.
func (o *output) Set(s string) error {
	switch output(s) {
	case outputTable, outputJSON:
		*o = output(s)
		return nil
	}
	return fmt.Errorf("want table or json")
}

func (o *output) String() string { return string(*o) }
func (o *output) Type() string   { return "form" }

// printJSON prints a document of specialroutes, all of it, indented.
func printJSON(w io.Writer, document []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(document), "", "  "); err != nil {
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	b.WriteByte('\n')
	_, err := w.Write(b.Bytes())
	return err
}

// table prints rows in columns. The first row is the head.
func table(w io.Writer, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, text := range row {
			if i > 0 {
				fmt.Fprint(tw, "\t")
			}
			if text = printable(text); text == "" {
				text = "-"
			}
			fmt.Fprint(tw, text)
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

// printable returns s as a terminal may be given it. A record that was written by
// hand, or a server that is none of ours, may hold anything.
func printable(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return s
	}
	return strconv.QuoteToGraphic(s)
}

// decode reads a document of specialroutes. Members that are not known are those of
// a newer one.
func decode(a *answer, v any) error {
	if err := json.Unmarshal(a.body, v); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	return nil
}
