package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"specialroutes.example/services/override"
)

// keysVariable is the variable of the environment that names the key file.
const keysVariable = "SPECIALROUTES_OVERRIDE_KEYS"

// stdLife is how long an override holds when nothing is said.
const stdLife = 2 * time.Hour

// overrideCommand makes an override. It asks nobody: the keys are all that it needs.
func (p *Program) overrideCommand() *cobra.Command {
	var (
		want     override.Token
		life     = span(stdLife)
		keysFile string
		form     = outputTable
	)
	cmd := p.command("override --service SERVICE --variant VARIANT [--for TIME] --keys FILE",
		"Sign a wish for one variant of a service, for a tester's requests", 0, 0,
		func(*cobra.Command, []string) error {
			keys, err := p.readKeys(keysFile)
			if err != nil {
				return err
			}
			now := p.Now()
			want.Expires = now.Add(time.Duration(life)).Truncate(time.Second)
			token, err := keys.Sign(want, now)
			if err != nil {
				return usage(err)
			}
			return p.printOverride(form, want, token)
		})
	cmd.Long = `Sign a wish for one variant of a service, and print it. A request that carries it
in the header Route-Override or in the cookie route-override is answered by that
variant while the service's record is active, until the time is over. Several, for
several services, go into one header with commas between them.`
	cmd.Example = `  curl -H "Route-Override: $(specialroutes override --service organizationservice --variant new --for 2h --keys keys)" ...`
	f := cmd.Flags()
	f.StringVar(&want.Service, "service", "", "`name` of the service")
	f.StringVar(&want.Variant, "variant", "", "`name` of the variant in the service's record")
	f.Var(&life, "for", "how `long` it holds, as 90m, 2h or 7d; at most 30d")
	f.StringVar(&keysFile, "keys", "", "`file` of keys, which the gateways have too; the first one signs ["+keysVariable+"]")
	f.Var(&form, "output", "table is the text alone, json has all about it")
	return cmd
}

func (p *Program) readKeys(file string) (*override.Keys, error) {
	if file == "" {
		file = lookup(p.Environ, keysVariable)
	}
	if file == "" {
		return nil, usage(errors.New("--keys or " + keysVariable + " must name the file of keys"))
	}
	contents, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--keys: %w", err)
	}
	keys, err := override.ParseKeys(contents)
	if err != nil {
		return nil, fmt.Errorf("--keys: %s: %w", file, err)
	}
	return keys, nil
}

func (p *Program) printOverride(form output, t override.Token, text string) error {
	if form == outputTable {
		_, err := fmt.Fprintln(p.Stdout, text)
		return err
	}
	document, err := json.Marshal(struct {
		Token   string    `json:"token"`
		Service string    `json:"service"`
		Variant string    `json:"variant"`
		Expires time.Time `json:"expires"`
		Header  string    `json:"header"`
		Cookie  string    `json:"cookie"`
	}{text, t.Service, t.Variant, t.Expires.UTC(), "Route-Override: " + text, "route-override=" + text})
	if err != nil {
		return err
	}
	return printJSON(p.Stdout, document)
}
