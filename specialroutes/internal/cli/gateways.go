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
		LastSeen time.Time `json:"lastSeen"`
	} `json:"gateways"`
}

func (p *Program) gatewaysCommand() *cobra.Command {
	var conn connection
	form := outputTable
	cmd := p.command("gateways", "Show which gateways follow, and how far each has got", 0, 0, func(cmd *cobra.Command, _ []string) error {
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
	conn.bind(cmd.Flags(), p.Environ)
	cmd.Flags().Var(&form, "output", "table for people, json for programs")
	return cmd
}

func (p *Program) printGateways(a *answer) error {
	var all gatewaysAnswer
	if err := decode(a, &all); err != nil {
		return err
	}
	rows := [][]string{{"GATEWAY", "VERSION", "CURSOR", "LAST SEEN", "SET ASIDE"}}
	for _, g := range all.Gateways {
		rows = append(rows, []string{g.ID, g.Version, g.Cursor, g.LastSeen.UTC().Format(time.RFC3339), strings.Join(g.SetAside, " ")})
	}
	return table(p.Stdout, rows)
}
