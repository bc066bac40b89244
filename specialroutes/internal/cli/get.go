package cli

import (
	"fmt"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"specialroutes.example/services/routing"
)

func (r *remote) getCommand() *cobra.Command {
	var etag bool
	cmd := r.command("get SERVICE", "Show a record", 1, 1, func(cmd *cobra.Command, args []string) error {
		a, err := r.ask(cmd, get(pathOf(args[0]), nil))
		if err != nil {
			return err
		}
		if shown, err := r.showAsItIs(a, etag); shown {
			return err
		}
		var record routing.Record
		if err := decode(a, &record); err != nil {
			return err
		}
		return r.printRecord(&record, a.etag)
	})
	cmd.Long = `Show a record. With --output json it is the document that put takes.

To change a record and not what somebody else has written meanwhile, ask for its ETag
first, then for the record, and put it with --if-match.`
	cmd.Flags().BoolVar(&etag, "etag", false, "print the record's ETag alone")
	return cmd
}

func (r *remote) printRecord(record *routing.Record, etag string) error {
	rows := [][]string{{"service", record.Service}, {"state", state(record)}, {"etag", etag}}
	for _, row := range [][]string{
		{"sticky", stickyOf(record)}, {"onUnavailable", text(record.OnUnavailable)},
		{"owner", text(record.Owner)}, {"ends", text(record.Ends)},
	} {
		if row[1] != "" {
			rows = append(rows, row)
		}
	}
	if err := table(r.Stdout, rows); err != nil {
		return err
	}
	for _, part := range [][][]string{variantRows(record), ruleRows(record), labelRuleRows(record)} {
		if len(part) < 2 {
			continue
		}
		fmt.Fprintln(r.Stdout)
		if err := table(r.Stdout, part); err != nil {
			return err
		}
	}
	return nil
}

func variantRows(r *routing.Record) [][]string {
	var sum int64
	for _, v := range r.Variants {
		if v.Weight != nil {
			sum += *v.Weight
		}
	}
	rows := [][]string{{"VARIANT", "WEIGHT", "SHARE", "PLACE"}}
	for _, v := range r.Variants {
		name, share := v.Name, ""
		if name == text(r.Default) {
			name += " (default)"
		}
		if v.Weight != nil && sum > 0 {
			share = fmt.Sprintf("%.4g %%", 100*float64(*v.Weight)/float64(sum))
		}
		rows = append(rows, []string{name, weight(v.Weight), share, place(text(v.Endpoint), text(v.Service), v.Selector)})
	}
	return rows
}

// place says where a variant lives.
func place(endpoint, service string, selector map[string]string) string {
	var parts []string
	if endpoint != "" {
		parts = append(parts, endpoint)
	}
	if service != "" {
		parts = append(parts, "service "+service)
	}
	if len(selector) > 0 {
		parts = append(parts, "with "+pairs(selector))
	}
	if parts == nil {
		return "own instances"
	}
	return strings.Join(parts, " ")
}

// pairs writes a map as name=value in the order of the names.
func pairs(m map[string]string) string {
	var list []string
	for name, value := range m {
		list = append(list, name+"="+value)
	}
	sort.Strings(list)
	return strings.Join(list, ",")
}

func ruleRows(r *routing.Record) [][]string {
	rows := [][]string{{"RULE", "IF ALL OF", "THEN"}}
	for _, u := range r.Rules {
		var conditions []string
		for i := range u.Match {
			conditions = append(conditions, condition(&u.Match[i]))
		}
		then := text(u.Variant)
		if u.Variant == nil {
			weights := make(map[string]string, len(u.Weights))
			for name, w := range u.Weights {
				weights[name] = number(w)
			}
			then = pairs(weights)
		}
		rows = append(rows, []string{u.Name, strings.Join(conditions, ", "), then})
	}
	return rows
}

// condition writes what a match looks at and its test.
func condition(m *routing.Match) string {
	what := m.On
	if m.Name != nil {
		what += " " + *m.Name
	}
	switch {
	case m.Present != nil && *m.Present:
		return what + " is there"
	case m.Present != nil:
		return what + " is not there"
	case m.Prefix != nil:
		return what + " begins with " + *m.Prefix
	case m.Regex != nil:
		return what + " matches " + *m.Regex
	case m.CIDR != nil:
		return what + " in " + *m.CIDR
	}
	const few = 3
	list := m.In
	if len(list) > few {
		list = append(append([]string(nil), list[:few]...), fmt.Sprintf("%d more", len(m.In)-few))
	}
	return what + " is " + strings.Join(list, "|")
}

func labelRuleRows(r *routing.Record) [][]string {
	rows := [][]string{{"HEADER", "LABEL", "MODE", "FALLBACK", "GUARD"}}
	for _, l := range r.LabelRules {
		rows = append(rows, []string{l.Header, l.Label, l.Mode, text(l.Fallback), strings.Join(l.Guard, " ")})
	}
	return rows
}

// showAsItIs shows of an answer what a flag asks for: the ETag alone, or the document.
// It reports whether one does.
func (r *remote) showAsItIs(a *answer, etag bool) (shown bool, err error) {
	switch {
	case etag:
		_, err = fmt.Fprintln(r.Stdout, a.etag)
	case r.form == outputJSON:
		err = printJSON(r.Stdout, a.body)
	default:
		return false, nil
	}
	return true, err
}
