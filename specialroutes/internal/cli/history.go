package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

// historyPage is a page of history, as far as the table shows it.
type historyPage struct {
	Entries []struct {
		Revision int64           `json:"revision"`
		ETag     string          `json:"etag"`
		At       time.Time       `json:"at"`
		Who      string          `json:"who"`
		Why      string          `json:"why"`
		Before   json.RawMessage `json:"before"`
		After    json.RawMessage `json:"after"`
	} `json:"entries"`
	Next int64 `json:"next"`
}

// stdHistory is how many changes are shown when nothing is said.
const stdHistory = 20

func (r *remote) historyCommand() *cobra.Command {
	cmd := r.historyOf("history SERVICE", "Show who changed a record, when and why", func(service string) (string, error) {
		return pathOf(service, "history"), nil
	})
	cmd.Long = "Show who changed a record, when and why, newest first. With --output json also from what\nand to what."
	return cmd
}

// historyOf makes a command that shows the history at the path of its argument.
func (r *remote) historyOf(use, short string, path func(argument string) (string, error)) *cobra.Command {
	var limit int
	var before int64
	cmd := r.command(use, short, 1, 1, func(cmd *cobra.Command, args []string) error {
		query := url.Values{"limit": {number(limit)}}
		if cmd.Flags().Changed("before") {
			query.Set("before", number(before))
		}
		if limit < 1 || before < 0 {
			return usage(errors.New("--limit and --before: want numbers from 1"))
		}
		at, err := path(args[0])
		if err != nil {
			return usage(err)
		}
		a, err := r.ask(cmd, get(at, query))
		if err != nil {
			return err
		}
		if r.form == outputJSON {
			return printJSON(r.Stdout, a.body)
		}
		return r.printHistory(a)
	})
	cmd.Flags().IntVar(&limit, "limit", stdHistory, "how `many` changes, at most 1000")
	cmd.Flags().Int64Var(&before, "before", 0, "only changes before this `revision`")
	return cmd
}

func (r *remote) printHistory(a *answer) error {
	var page historyPage
	if err := decode(a, &page); err != nil {
		return err
	}
	rows := [][]string{{"REVISION", "WHEN", "WHO", "WHAT", "WHY"}}
	for i := range page.Entries {
		e := &page.Entries[i]
		what := "changed"
		switch {
		case isNull(e.After):
			what = "deleted"
		case isNull(e.Before):
			what = "created"
		}
		rows = append(rows, []string{number(e.Revision), e.At.UTC().Format(time.RFC3339), e.Who, what, e.Why})
	}
	if err := table(r.Stdout, rows); err != nil {
		return err
	}
	if page.Next != 0 {
		fmt.Fprintf(r.Stdout, "there are more: --before %d\n", page.Next)
	}
	return nil
}

func isNull(document json.RawMessage) bool { return len(document) == 0 || string(document) == "null" }
