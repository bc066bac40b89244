package cli

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

// remote is what all commands share that ask a server and print what it says.
type remote struct {
	*Program
	connection connection
	form       output
}

func (p *Program) routesCommand() *cobra.Command {
	r := &remote{Program: p, form: outputTable}
	cmd := group("routes COMMAND", "Read and change route records",
		r.listCommand(), r.getCommand(), r.putCommand(), r.deleteCommand(), r.weightsCommand(), r.activeCommand(),
		r.historyCommand(), r.rollbackCommand(), r.explainCommand())
	cmd.Long = `Read and change route records through the REST interface of a specialroutes that
serves. docs/routing.md tells what a record means, docs/command-line.md what the exit
codes are.`
	r.bind(cmd)
	return cmd
}

// bind adds the flags of all commands below one.
func (r *remote) bind(cmd *cobra.Command) {
	r.connection.bind(cmd.PersistentFlags(), r.Environ)
	cmd.PersistentFlags().Var(&r.form, "output", "table for people, json for programs")
}

// ask makes a call to the server that the flags name.
func (r *remote) ask(cmd *cobra.Command, k call) (*answer, error) {
	c, err := r.open(&r.connection)
	if err != nil {
		return nil, err
	}
	return c.do(cmd.Context(), k)
}

// pathOf returns the path of a record, or of what is below it.
func pathOf(service string, below ...string) string {
	path := "/v1/routes/" + url.PathEscape(service)
	for _, part := range below {
		path += "/" + part
	}
	return path
}

func get(path string, query url.Values) call {
	return call{method: http.MethodGet, path: path, query: query}
}

func number[T ~int | ~int64](n T) string { return strconv.FormatInt(int64(n), 10) }
