package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"specialroutes.example/services/service"
)

// question is what explain is asked.
type question struct {
	Service string          `json:"service"`
	Record  json.RawMessage `json:"record,omitempty"`
	Request request         `json:"request"`
}

type request struct {
	Method   string              `json:"method,omitempty"`
	Path     string              `json:"path,omitempty"`
	Query    string              `json:"query,omitempty"`
	Headers  map[string][]string `json:"headers,omitempty"`
	Client   string              `json:"client,omitempty"`
	Override string              `json:"override,omitempty"`
	Draw     int64               `json:"draw,omitempty"`
}

// explanation is the answer, as far as it is shown.
type explanation struct {
	Revision int64  `json:"revision"`
	Variant  string `json:"variant"`
	Reason   string `json:"reason"`
	NeedsKey bool   `json:"needsKey"`
	Target   struct {
		Endpoint string            `json:"endpoint"`
		Service  string            `json:"service"`
		Selector map[string]string `json:"selector"`
	} `json:"target"`
	Steps []struct {
		Step   string `json:"step"`
		Rule   string `json:"rule"`
		Result string `json:"result"`
		Why    string `json:"why"`
	} `json:"steps"`
}

func (r *remote) explainCommand() *cobra.Command {
	var q question
	var headers []string
	var file string
	cmd := r.command("explain SERVICE", "Say which variant a request would get, and why", 1, 1, func(cmd *cobra.Command, args []string) error {
		q.Service = args[0]
		if err := q.Request.complete(headers); err != nil {
			return usage(err)
		}
		if file != "" {
			document, err := r.readDocument(file)
			if err != nil {
				return err
			}
			if !json.Valid(document) {
				return &service.ExitError{Code: exitRefused, Err: errors.New("--record: the document is not JSON")}
			}
			q.Record = document
		}
		body, err := json.Marshal(q)
		if err != nil {
			return err
		}
		a, err := r.ask(cmd, call{method: http.MethodPost, path: "/v1/explain", body: body})
		if err != nil {
			return err
		}
		if r.form == outputJSON {
			return printJSON(r.Stdout, a.body)
		}
		return r.printExplanation(a, args[0])
	})
	cmd.Long = `Say which variant a request would get, and why: what was tried, in order. It is decided
by the same code as in the gateways. Changes nothing.`
	cmd.Example = "  specialroutes routes explain organizationservice --path /v1/organizations/7 --header 'tmx-user-id: u-17'"
	f := cmd.Flags()
	f.StringVar(&q.Request.Method, "method", "", "`method` of the request (default GET)")
	f.StringVar(&q.Request.Path, "path", "", "raw `path` below the gateway's prefix, with the query or without (default /)")
	f.StringArrayVar(&headers, "header", nil, "a `line` 'name: value'; may be repeated")
	f.StringVar(&q.Request.Client, "client", "", "the client's `address`")
	f.StringVar(&q.Request.Override, "override", "", "the `variant` that a valid override asks for")
	f.Int64Var(&q.Request.Draw, "draw", 0, "the `number` that is drawn, should it come to that (default a random one)")
	f.StringVar(&file, "record", "", "decide by the record in this `file` instead of the stored one; - is standard input")
	return cmd
}

// complete takes the query from the path and reads the header lines.
func (q *request) complete(headers []string) error {
	q.Path, q.Query, _ = strings.Cut(q.Path, "?")
	for _, line := range headers {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			return fmt.Errorf("--header: %q: want 'name: value'", line)
		}
		if q.Headers == nil {
			q.Headers = map[string][]string{}
		}
		q.Headers[name] = append(q.Headers[name], strings.TrimSpace(value))
	}
	if q.Draw < 0 {
		return errors.New("--draw: want a number from 1")
	}
	return nil
}

func (r *remote) printExplanation(a *answer, name string) error {
	var e explanation
	if err := decode(a, &e); err != nil {
		return err
	}
	where := ""
	if e.Variant != "" {
		where = place(e.Target.Endpoint, e.Target.Service, e.Target.Selector)
	}
	rows := [][]string{{"variant", e.Variant}, {"reason", e.Reason}, {"place", where}}
	if e.Revision > 0 {
		rows = append(rows, []string{"record", name + ", revision " + number(e.Revision)})
	}
	if e.NeedsKey {
		rows = append(rows, []string{"key", "the gateway would issue one and decide by that"})
	}
	if err := table(r.Stdout, rows); err != nil {
		return err
	}
	fmt.Fprintln(r.Stdout)
	steps := [][]string{{"STEP", "RULE", "RESULT", "WHY"}}
	for _, s := range e.Steps {
		steps = append(steps, []string{s.Step, s.Rule, s.Result, s.Why})
	}
	return table(r.Stdout, steps)
}
