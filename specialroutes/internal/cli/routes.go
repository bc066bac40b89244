package cli

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

// routes is what all commands below `routes` share.
type routes struct {
	*Program
	connection connection
	form       output
}

func (p *Program) routesCommand() *cobra.Command {
	r := &routes{Program: p, form: outputTable}
	cmd := group("routes COMMAND", "Read and change route records",
		r.listCommand(), r.getCommand(), r.putCommand(), r.deleteCommand(), r.weightsCommand(), r.activeCommand(),
		r.historyCommand(), r.rollbackCommand(), r.explainCommand())
	cmd.Long = `Read and change route records through the REST interface of a specialroutes that
serves. docs/routing.md tells what a record means, docs/command-line.md what the exit
codes are.`
	r.connection.bind(cmd.PersistentFlags(), p.Environ)
	cmd.PersistentFlags().Var(&r.form, "output", "table for people, json for programs")
	return cmd
}

// ask makes a call to the server that the flags name.
func (r *routes) ask(cmd *cobra.Command, k call) (*answer, error) {
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
