package cli

import (
	"encoding/json"
	"fmt"
)

// dryRun is what a change would do.
type dryRun struct {
	Service string `json:"service"`
	Changes []struct {
		Pointer string          `json:"pointer"`
		Op      string          `json:"op"`
		Before  json.RawMessage `json:"before"`
		After   json.RawMessage `json:"after"`
	} `json:"changes"`
	Moves struct {
		Sample  int `json:"sample"`
		Moved   int `json:"moved"`
		Between []struct {
			From string `json:"from"`
			To   string `json:"to"`
			Keys int    `json:"keys"`
		} `json:"between"`
	} `json:"moves"`
	Warnings []string `json:"warnings"`
}

func (r *remote) printDryRun(a *answer) error {
	var would dryRun
	if err := decode(a, &would); err != nil {
		return err
	}
	if r.form == outputJSON {
		return printJSON(r.Stdout, a.body)
	}
	if len(would.Changes) == 0 {
		fmt.Fprintln(r.Stdout, "nothing would change")
	} else {
		rows := [][]string{{"CHANGE", "POINTER", "BEFORE", "AFTER"}}
		for _, c := range would.Changes {
			pointer := c.Pointer
			if pointer == "" {
				pointer = "the document"
			}
			rows = append(rows, []string{c.Op, pointer, short(string(c.Before)), short(string(c.After))})
		}
		if err := table(r.Stdout, rows); err != nil {
			return err
		}
	}
	if err := r.printMoves(&would); err != nil {
		return err
	}
	for _, warning := range would.Warnings {
		r.warn(would.Service + ": " + warning)
	}
	return nil
}

// printMoves says what a change of a record would do to a sample of keys.
func (r *remote) printMoves(would *dryRun) error {
	if would.Moves.Sample == 0 { // not a record
		return nil
	}
	fmt.Fprintf(r.Stdout, "\nof %d keys of a sample %d would move\n", would.Moves.Sample, would.Moves.Moved)
	if len(would.Moves.Between) == 0 {
		return nil
	}
	rows := [][]string{{"FROM", "TO", "KEYS"}}
	for _, m := range would.Moves.Between {
		rows = append(rows, []string{m.From, m.To, number(m.Keys)})
	}
	return table(r.Stdout, rows)
}

// short cuts what would make the table too wide; --output json has all of it.
func short(s string) string {
	const widest = 48
	if runes := []rune(s); len(runes) > widest {
		return string(runes[:widest-1]) + "…"
	}
	return s
}
