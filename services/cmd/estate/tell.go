package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"specialroutes.example/services/estate"
)

// The book's call.
const (
	organization = "e254f8c-c442-4ebe-a82a-e2fc1d1ff78a"
	license      = "f3831f8c-c338-4ebe-a82a-e2fc1d1ff78a"
	licensePath  = "/api/licensing/v1/organizations/" + organization + "/licenses/" + license
)

// tell prints three commands to try.
func tell(out io.Writer, e *estate.Estate) {
	gateway, routes := local(e.GatewayURL(0)), local(e.SpecialRoutesURL())+recordPath
	onlyNew, err := json.Marshal(newRecord(local(e.NewURL()), 0))
	if err != nil { // a struct of strings and an integer
		panic(err)
	}
	fmt.Fprintf(out, `
The estate is up. In another terminal, try

  curl %s
  curl -X PUT -H 'Content-Type: application/json' -d '%s' %s
  curl -X DELETE %s

The first one is the call to repeat: its contactName changes between OLD:: and
NEW::. The second one sends all calls to NEW (weight is the tenths that stay with
OLD), the third one removes the record, so that all calls go to OLD.

Calls that the organization service answered, through the gateway (Ctrl-C stops
everything):
`, gateway+licensePath, onlyNew, routes, routes)
}

// local writes a URL as a person does.
func local(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }
