package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"specialroutes.example/services/routing"
)

// pageSize is how many records are asked for at once.
const pageSize = 1000

// routePage and routeEntry are the list's answer, as far as the table shows it.
type routePage struct {
	Routes []json.RawMessage `json:"routes"`
	Next   string            `json:"next,omitempty"`
}

type routeEntry struct {
	Service  string          `json:"service"`
	ETag     string          `json:"etag"`
	Record   json.RawMessage `json:"record"`
	Broken   string          `json:"broken"`
	Warnings []string        `json:"warnings"`
}

func (r *remote) listCommand() *cobra.Command {
	return r.command("list", "List all records", 0, 0, func(cmd *cobra.Command, _ []string) error {
		all := routePage{Routes: []json.RawMessage{}}
		err := r.pages(cmd, "/v1/routes", url.Values{}, func(a *answer) (next string, err error) {
			var page routePage
			err = decode(a, &page)
			all.Routes = append(all.Routes, page.Routes...)
			return page.Next, err
		})
		if err != nil {
			return err
		}
		return r.printList(all)
	})
}

// pages asks for one page of a list after the other. read takes each and returns
// where the next one begins, "" after the last.
func (r *remote) pages(cmd *cobra.Command, path string, query url.Values, read func(*answer) (next string, err error)) error {
	c, err := r.open(&r.connection)
	if err != nil {
		return err
	}
	query.Set("limit", number(pageSize))
	for {
		a, err := c.do(cmd.Context(), get(path, query))
		if err != nil {
			return err
		}
		next, err := read(a)
		if err != nil || next == "" {
			return err
		}
		query.Set("after", next)
	}
}

func (r *remote) printList(all routePage) error {
	if r.form == outputJSON {
		document, err := json.Marshal(all)
		if err != nil {
			return err
		}
		return printJSON(r.Stdout, document)
	}
	rows := [][]string{{"SERVICE", "STATE", "VARIANTS", "RULES", "STICKY", "OWNER", "ETAG"}}
	var warnings []string
	for _, raw := range all.Routes {
		var e routeEntry
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("the answer cannot be read: %w", err)
		}
		rows = append(rows, e.row())
		if e.Broken != "" {
			warnings = append(warnings, e.Service+": the record cannot be used: "+e.Broken)
		}
		for _, w := range e.Warnings {
			warnings = append(warnings, e.Service+": "+w)
		}
	}
	if err := table(r.Stdout, rows); err != nil {
		return err
	}
	for _, w := range warnings {
		r.warn(w)
	}
	return nil
}

func (e *routeEntry) row() []string {
	var record routing.Record
	if e.Broken != "" || json.Unmarshal(e.Record, &record) != nil {
		return []string{e.Service, "broken", "", "", "", "", e.ETag}
	}
	rules := ""
	if len(record.Rules) > 0 {
		rules = number(len(record.Rules))
	}
	return []string{e.Service, state(&record), variantsOf(&record), rules, stickyOf(&record), text(record.Owner), e.ETag}
}

func state(r *routing.Record) string {
	if r.Active != nil && *r.Active {
		return "active"
	}
	return "off"
}

// variantsOf writes names and weights, with a star at the default one.
func variantsOf(r *routing.Record) string {
	var list []string
	for _, v := range r.Variants {
		star := ""
		if v.Name == text(r.Default) {
			star = "*"
		}
		list = append(list, v.Name+star+"="+weight(v.Weight))
	}
	return strings.Join(list, " ")
}

func stickyOf(r *routing.Record) string {
	if r.Sticky == nil {
		return ""
	}
	return strings.TrimSpace(r.Sticky.By + " " + text(r.Sticky.Name))
}

// text returns what p points to, "" for nil.
func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

func weight(w *int64) string {
	if w == nil {
		return "?"
	}
	return number(*w)
}
