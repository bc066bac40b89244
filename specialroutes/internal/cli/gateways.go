package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// gatewaysAnswer is what is known of the gateways, as far as the table shows it.
type gatewaysAnswer struct {
	Gateways []struct {
		ID       string    `json:"id"`
		Version  string    `json:"version"`
		Cursor   string    `json:"cursor"`
		SetAside []string  `json:"setAside"`
		Seen     time.Time `json:"seen"`
		Live     bool      `json:"live"`
		Left     bool      `json:"left"`
	} `json:"gateways"`
}

func (p *Program) gatewaysCommand() *cobra.Command {
	var conn connection
	form := outputTable
	cmd := p.command("gateways", "Show which gateways were heard of within a week, and how far each has got", 0, 0, func(cmd *cobra.Command, _ []string) error {
		c, err := p.open(&conn)
		if err != nil {
			return err
		}
		a, err := c.do(cmd.Context(), get("/v1/gateways", nil))
		if err != nil {
			return err
		}
		if form == outputJSON {
			return printJSON(p.Stdout, a.body)
		}
		return p.printGateways(a)
	})
	cmd.Long = `Show which gateways were heard of within a week, and how far each has got. Those that are
live have asked within the last 2 minutes; --wait waits for them. Those that left have
said that they end.`
	conn.bind(cmd.Flags(), p.Environ)
	cmd.Flags().Var(&form, "output", "table for people, json for programs")
	return cmd
}

func (p *Program) printGateways(a *answer) error {
	var all gatewaysAnswer
	if err := decode(a, &all); err != nil {
		return err
	}
	rows := [][]string{{"GATEWAY", "STATE", "IN FORCE", "SET ASIDE", "SEEN", "VERSION"}}
	for _, g := range all.Gateways {
		state, inForce := "away", g.Cursor
		switch {
		case g.Left:
			state = "left"
		case g.Live:
			state = "live"
		}
		if inForce == "" {
			inForce = "not known"
		}
		rows = append(rows, []string{g.ID, state, inForce, strings.Join(g.SetAside, " "), g.Seen.UTC().Format(time.RFC3339), g.Version})
	}
	return table(p.Stdout, rows)
}
