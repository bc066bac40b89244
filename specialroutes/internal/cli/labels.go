package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"specialroutes.example/services/routing"
)

// labelsDocument is what GET answers and PUT takes.
type labelsDocument struct {
	Labels routing.LabelChanges `json:"labels"`
	Ends   time.Time            `json:"ends"`
}

func (p *Program) labelsCommand() *cobra.Command {
	r := &remote{Program: p, form: outputTable}
	cmd := group("labels COMMAND", "Change labels of instances, for a while",
		r.listLabelsCommand(), r.getLabelsCommand(), r.setLabelsCommand(), r.clearLabelsCommand(), r.labelsHistoryCommand())
	cmd.Long = `Change the labels that gateways see on an instance, until a moment, without touching the
instance or the registry. An INSTANCE is written SERVICE/ID, with the ID that it is
registered with, as organizationservice/org-1.`
	r.bind(cmd)
	return cmd
}

// labelsPath returns the path of the labels of an instance, SERVICE/ID, or of what is
// below it.
func labelsPath(instance string, below ...string) (string, error) {
	service, id, ok := strings.Cut(instance, "/")
	if !ok || service == "" || id == "" {
		return "", fmt.Errorf("%q: want SERVICE/ID, as organizationservice/org-1", instance)
	}
	path := "/v1/instances/" + url.PathEscape(service) + "/" + url.PathEscape(id) + "/labels"
	for _, part := range below {
		path += "/" + part
	}
	return path, nil
}

func (r *remote) listLabelsCommand() *cobra.Command {
	var service string
	cmd := r.command("list", "List the instances whose labels are changed", 0, 0, func(cmd *cobra.Command, _ []string) error {
		query := url.Values{}
		if service != "" {
			query.Set("service", service)
		}
		var all labelsPage
		all.Instances = []json.RawMessage{}
		err := r.pages(cmd, "/v1/instances", query, func(a *answer) (next string, err error) {
			var page labelsPage
			err = decode(a, &page)
			all.Instances = append(all.Instances, page.Instances...)
			return page.Next, err
		})
		if err != nil {
			return err
		}
		return r.printLabelsList(all)
	})
	cmd.Flags().StringVar(&service, "service", "", "only instances of this `service`")
	return cmd
}

// labelsPage and labelsEntry are the list's answer, as far as the table shows it.
type labelsPage struct {
	Instances []json.RawMessage `json:"instances"`
	Next      string            `json:"next,omitempty"`
}

type labelsEntry struct {
	Service string          `json:"service"`
	ID      string          `json:"id"`
	ETag    string          `json:"etag"`
	Labels  json.RawMessage `json:"labels"`
	Ends    time.Time       `json:"ends"`
	Broken  string          `json:"broken"`
}

func (r *remote) printLabelsList(all labelsPage) error {
	if r.form == outputJSON {
		document, err := json.Marshal(all)
		if err != nil {
			return err
		}
		return printJSON(r.Stdout, document)
	}
	rows := [][]string{{"INSTANCE", "LABELS", "ENDS", "ETAG"}}
	var warnings []string
	for _, raw := range all.Instances {
		var e labelsEntry
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("the answer cannot be read: %w", err)
		}
		name := e.Service + "/" + e.ID
		var changes routing.LabelChanges
		text := "broken"
		if e.Broken != "" || json.Unmarshal(e.Labels, &changes) != nil {
			warnings = append(warnings, name+": the labels cannot be used: "+e.Broken)
		} else {
			text = changesOf(changes)
		}
		rows = append(rows, []string{name, text, e.Ends.Format(time.RFC3339), e.ETag})
	}
	if err := table(r.Stdout, rows); err != nil {
		return err
	}
	for _, w := range warnings {
		r.warn(w)
	}
	return nil
}

// changesOf writes changes as set takes them, in the order of their names.
func changesOf(changes routing.LabelChanges) string {
	var list []string
	for name, value := range changes {
		if value == nil {
			list = append(list, name+"-")
		} else {
			list = append(list, name+"="+*value)
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func (r *remote) getLabelsCommand() *cobra.Command {
	var etag bool
	cmd := r.command("get INSTANCE", "Show what is changed of an instance's labels", 1, 1, func(cmd *cobra.Command, args []string) error {
		path, err := labelsPath(args[0])
		if err != nil {
			return usage(err)
		}
		a, err := r.ask(cmd, get(path, nil))
		if err != nil {
			return err
		}
		if shown, err := r.showAsItIs(a, etag); shown {
			return err
		}
		var found labelsDocument
		if err := decode(a, &found); err != nil {
			return err
		}
		rows := [][]string{{"instance", args[0]}, {"ends", found.Ends.Format(time.RFC3339)}, {"etag", a.etag}}
		if err := table(r.Stdout, rows); err != nil {
			return err
		}
		fmt.Fprintln(r.Stdout)
		return table(r.Stdout, labelRows(found.Labels))
	})
	cmd.Flags().BoolVar(&etag, "etag", false, "print the ETag alone")
	return cmd
}

func labelRows(changes routing.LabelChanges) [][]string {
	var rows [][]string
	for name, value := range changes {
		row := []string{name, "hidden", ""}
		if value != nil {
			row = []string{name, "set", *value}
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return slices.Insert(rows, 0, []string{"LABEL", "IS", "VALUE"})
}

func (r *remote) setLabelsCommand() *cobra.Command {
	w := new(writing)
	var during span
	var ends string
	cmd := r.command("set INSTANCE NAME=VALUE|NAME-...", "Change labels of an instance, until a moment", 2, 1+manyLabels, func(cmd *cobra.Command, args []string) error {
		path, err := labelsPath(args[0])
		if err != nil {
			return usage(err)
		}
		changes, err := parseLabels(args[1:])
		if err != nil {
			return usage(err)
		}
		end, err := r.end(time.Duration(during), ends)
		if err != nil {
			return usage(err)
		}
		if err := r.change(cmd, w, http.MethodPut, path, routing.InstanceLabels{Labels: changes, Ends: &end}); err != nil {
			return err
		}
		if r.form == outputTable && !w.dryRun {
			_, err = fmt.Fprintln(r.Stdout, whoKnows)
		}
		return err
	})
	cmd.Long = `Change labels of an instance, until a moment. NAME=VALUE sets or replaces a label, NAME-
hides it. All that was changed before is replaced.`
	cmd.Example = "  specialroutes labels set organizationservice/org-1 zone=alice version- --for 8h --why \"alice's lane\" --wait"
	cmd.Flags().Var(&during, "for", "how `long` it holds, as 8h or 7d; at most 30d")
	cmd.Flags().StringVar(&ends, "ends", "", "the `moment` it ends instead, as 2026-12-20T12:00:00Z")
	w.bind(cmd)
	return cmd
}

// whoKnows is said after labels were set: specialroutes does not know which instances there
// are, so that a mistyped one is not noticed here.
const whoKnows = "whether there is such an instance, gateways know: GET /instances on their admin port has it, or lists it in changesWaiting"

// manyLabels bounds the arguments; how many labels there may be is the server's word.
const manyLabels = 1000

// parseLabels reads NAME=VALUE and NAME-.
func parseLabels(args []string) (routing.LabelChanges, error) {
	changes := make(routing.LabelChanges, len(args))
	for _, arg := range args {
		var value *string
		name, text, sets := strings.Cut(arg, "=")
		if sets {
			value = &text
		} else if name, sets = strings.CutSuffix(arg, "-"); !sets {
			return nil, fmt.Errorf("%q: want NAME=VALUE to set a label, or NAME- to hide it", arg)
		}
		if name == "" {
			return nil, fmt.Errorf("%q: the label has no name", arg)
		}
		if _, given := changes[name]; given {
			return nil, fmt.Errorf("%q: the label was given before", arg)
		}
		changes[name] = value
	}
	return changes, nil
}

// end returns when labels end that shall hold for a time, or until a moment.
func (r *remote) end(during time.Duration, ends string) (string, error) {
	switch {
	case ends != "" && during != 0:
		return "", errors.New("--for and --ends say the same thing: give one of them")
	case ends != "":
		return ends, nil
	case during <= 0:
		return "", errors.New("say when it ends, by --for or --ends")
	}
	return r.Now().Add(during).UTC().Truncate(time.Second).Format(time.RFC3339), nil
}

func (r *remote) clearLabelsCommand() *cobra.Command {
	w := new(writing)
	cmd := r.command("clear INSTANCE", "Let an instance's labels be as they are registered; the history stays", 1, 1, func(cmd *cobra.Command, args []string) error {
		path, err := labelsPath(args[0])
		if err != nil {
			return usage(err)
		}
		return r.change(cmd, w, http.MethodDelete, path, nil)
	})
	w.bind(cmd)
	return cmd
}

func (r *remote) labelsHistoryCommand() *cobra.Command {
	cmd := r.historyOf("history INSTANCE", "Show who changed an instance's labels, when and why", func(instance string) (string, error) {
		return labelsPath(instance, "history")
	})
	cmd.Long = `Show who changed an instance's labels, when and why, newest first. With --output json also
from what and to what. Labels that came to their end were deleted by "specialroutes".`
	return cmd
}
