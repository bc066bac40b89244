package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"specialroutes.example/services/service"
)

// writing is what every command that changes something can be told.
type writing struct {
	ifMatch, ifNoneMatch string
	why                  string
	dryRun               bool
	wait                 wait
}

// wait is what an answer waits for.
type wait string

// waitApplied waits until the change is in force at the gateways.
const waitApplied wait = "applied"

// Set, String and Type make it a flag.
func (w *wait) Set(s string) error {
	if wait(s) != waitApplied {
		return errors.New("want applied")
	}
	*w = waitApplied
	return nil
}

func (w *wait) String() string { return string(*w) }
func (w *wait) Type() string   { return "what" }

// bind adds the flags of a command that changes a record.
func (w *writing) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&w.ifMatch, "if-match", "", "make the change only if what is stored has this `ETag`; * is anything")
	f.StringVar(&w.ifNoneMatch, "if-none-match", "", "make the change only if what is stored has not this `ETag`; * creates only")
	f.StringVar(&w.why, "why", "", "the `reason`, which history keeps")
	f.BoolVar(&w.dryRun, "dry-run", false, "change nothing and show what would change")
	f.Var(&w.wait, "wait", "wait until the gateways have the change in force, and say which have not")
	f.Lookup("wait").NoOptDefVal = string(waitApplied)
}

// header returns the conditions.
func (w *writing) header() http.Header {
	h := http.Header{}
	if w.ifMatch != "" {
		h.Set("If-Match", tags(w.ifMatch))
	}
	if w.ifNoneMatch != "" {
		h.Set("If-None-Match", tags(w.ifNoneMatch))
	}
	return h
}

var bareTag = regexp.MustCompile(`^[0-9]+\.[a-z0-9]+$`)

// tags puts the quotation marks around an ETag that a shell has taken away.
func tags(s string) string {
	if bareTag.MatchString(s) {
		return `"` + s + `"`
	}
	return s
}

// query returns the parameters of the change.
func (w *writing) query() (url.Values, error) {
	q := url.Values{}
	if w.dryRun {
		if w.wait != "" {
			return nil, usage(errors.New("--dry-run changes nothing that --wait could wait for: give one of them"))
		}
		q.Set("dryRun", "true")
	}
	if w.wait != "" {
		q.Set("wait", string(w.wait))
	}
	if w.why != "" {
		q.Set("why", w.why)
	}
	return q, nil
}

// change makes a change and prints what became of it.
func (r *remote) change(cmd *cobra.Command, w *writing, method, path string, document any) error {
	query, err := w.query()
	if err != nil {
		return err
	}
	k := call{method: method, path: path, query: query, header: w.header()}
	switch d := document.(type) {
	case nil:
	case []byte:
		k.body = d
	default:
		if k.body, err = json.Marshal(d); err != nil {
			return err
		}
	}
	a, err := r.ask(cmd, k)
	if err != nil {
		return err
	}
	if w.dryRun {
		return r.printDryRun(a)
	}
	return r.printWritten(a, w)
}

// written is the answer to a change, as far as it is shown.
type written struct {
	Service  string          `json:"service"`
	ID       string          `json:"id"` // of an instance, "" where a record was changed
	Revision int64           `json:"revision"`
	Record   json.RawMessage `json:"record"`
	Labels   json.RawMessage `json:"labels"`
	Warnings []string        `json:"warnings"`
	Applied  *applied        `json:"applied"`
}

// applied says how far a change has got.
type applied struct {
	Of       int      `json:"of"`
	Now      int      `json:"now"`
	Behind   []string `json:"behind"`
	SetAside []string `json:"setAside"`
}

func (r *remote) printWritten(a *answer, w *writing) error {
	var done written
	if err := decode(a, &done); err != nil {
		return err
	}
	if r.form == outputJSON {
		if err := printJSON(r.Stdout, a.body); err != nil {
			return err
		}
	} else {
		r.tellWritten(a, &done)
	}
	if w.wait == "" {
		return nil
	}
	return done.Applied.err()
}

func (r *remote) tellWritten(a *answer, done *written) {
	what := "changed"
	switch {
	case a.status == http.StatusCreated:
		what = "created"
	case isNull(done.Record) && isNull(done.Labels):
		what = "deleted"
	}
	name := done.Service
	if done.ID != "" {
		name += "/" + done.ID
	}
	fmt.Fprintf(r.Stdout, "%s: %s, revision %d", printable(name), what, done.Revision)
	if a.etag != "" {
		fmt.Fprintf(r.Stdout, ", ETag %s", printable(a.etag))
	}
	fmt.Fprintln(r.Stdout)
	switch p := done.Applied; {
	case p == nil:
	case p.Of == 0:
		fmt.Fprintln(r.Stdout, "no gateway has asked for changes within the last 2 minutes")
	default:
		fmt.Fprintf(r.Stdout, "applied on %d of %d gateways\n", p.Now, p.Of)
	}
	for _, warning := range done.Warnings {
		r.warn(done.Service + ": " + warning)
	}
}

// err says who has not applied a change, nil when all have.
func (p *applied) err() error {
	var text string
	switch {
	case p == nil:
		text = "the server does not say whether it is applied"
	case len(p.Behind) == 0 && len(p.SetAside) == 0:
		return nil
	default:
		text = fmt.Sprintf("%d of %d gateways have not applied it", len(p.Behind)+len(p.SetAside), p.Of)
		if len(p.Behind) > 0 {
			text += "\n  behind: " + printable(strings.Join(p.Behind, ", "))
		}
		if len(p.SetAside) > 0 {
			text += "\n  cannot use it, and keep what was before: " + printable(strings.Join(p.SetAside, ", "))
		}
	}
	return &service.ExitError{Code: exitNotApplied, Err: errors.New("written, but " + text)}
}

func (r *remote) putCommand() *cobra.Command {
	w := new(writing)
	cmd := r.command("put SERVICE [FILE]", "Create or replace a record", 1, 2, func(cmd *cobra.Command, args []string) error {
		document, err := r.readDocument(append(args, "-")[1])
		if err != nil {
			return err
		}
		return r.change(cmd, w, http.MethodPut, pathOf(args[0]), document)
	})
	cmd.Long = "Create or replace a record by the JSON document in FILE, or in standard input without\none or with -."
	w.bind(cmd)
	return cmd
}

// readDocument reads a file, or standard input for "-". The server is the one who
// judges what stands there; it takes 1 MiB.
func (p *Program) readDocument(file string) ([]byte, error) {
	const most = 1<<20 + 1
	if file == "-" {
		data, err := io.ReadAll(io.LimitReader(p.Stdin, most))
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return data, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil, err
	}
	return data, nil
}

func (r *remote) deleteCommand() *cobra.Command {
	w := new(writing)
	cmd := r.command("delete SERVICE", "Delete a record; its history stays", 1, 1, func(cmd *cobra.Command, args []string) error {
		return r.change(cmd, w, http.MethodDelete, pathOf(args[0]), nil)
	})
	w.bind(cmd)
	return cmd
}

func (r *remote) weightsCommand() *cobra.Command {
	w := new(writing)
	cmd := r.command("weights SERVICE VARIANT=WEIGHT...", "Change the weights of a record's variants, and nothing else", 2, 1+manyVariants,
		func(cmd *cobra.Command, args []string) error {
			weights, err := parseWeights(args[1:])
			if err != nil {
				return usage(err)
			}
			return r.change(cmd, w, http.MethodPut, pathOf(args[0], "weights"), weights)
		})
	cmd.Long = "Change the weights of a record's variants. All of them are named, so that nobody changes\na sum without seeing it."
	cmd.Example = "  specialroutes routes weights organizationservice old=9 new=1 --why 'one in ten' --wait"
	w.bind(cmd)
	return cmd
}

// manyVariants bounds the arguments; how many variants there may be is the server's
// word.
const manyVariants = 1000

func parseWeights(args []string) (map[string]int64, error) {
	weights := make(map[string]int64, len(args))
	for _, arg := range args {
		name, number, ok := strings.Cut(arg, "=")
		weight, err := strconv.ParseInt(number, 10, 64)
		if !ok || name == "" || err != nil {
			return nil, fmt.Errorf("%q: want VARIANT=WEIGHT with an integer, as new=1", arg)
		}
		if _, given := weights[name]; given {
			return nil, fmt.Errorf("%q: the variant was given before", arg)
		}
		weights[name] = weight
	}
	return weights, nil
}

func (r *remote) activeCommand() *cobra.Command {
	w := new(writing)
	cmd := r.command("active SERVICE true|false", "Switch a record on or off, and nothing else", 2, 2,
		func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{"true", "false"}, args[1]) {
				return usage(fmt.Errorf("%q: want true or false", args[1]))
			}
			return r.change(cmd, w, http.MethodPut, pathOf(args[0], "active"), map[string]bool{"active": args[1] == "true"})
		})
	cmd.Long = "Switch a record on or off. Off, the default variant answers every call; label rules stay\nin force."
	w.bind(cmd)
	return cmd
}

func (r *remote) rollbackCommand() *cobra.Command {
	w := new(writing)
	cmd := r.command("rollback SERVICE REVISION", "Put back what a revision of the record was", 2, 2,
		func(cmd *cobra.Command, args []string) error {
			revision, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil || revision < 1 {
				return usage(fmt.Errorf("%q: want a revision, a number of the record's history", args[1]))
			}
			return r.change(cmd, w, http.MethodPost, pathOf(args[0], "rollback"), map[string]int64{"revision": revision})
		})
	cmd.Long = "Put back what a revision of the record was, as a change of its own. A revision that was a\ndelete is a delete."
	w.bind(cmd)
	return cmd
}
