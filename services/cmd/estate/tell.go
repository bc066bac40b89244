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

// tell prints three commands to try. None of them leaves anything behind that
// surprises whoever goes on with the README.
func tell(out io.Writer, e *estate.Estate) {
	gateway, routes := local(e.GatewayURL(0)), local(e.SpecialRoutesURL())+recordPath
	record, err := json.Marshal(newRecord(local(e.NewURL()), bookWeight))
	if err != nil { // a struct of strings and an integer
		panic(err)
	}
	fmt.Fprintf(out, `
The estate is up. In another terminal, try

  curl %s
  curl %s
  curl -X PUT -H 'Content-Type: application/json' -d '%s' %s

The first one is the call to repeat: its contactName changes between OLD:: and
NEW::. The second one shows the record, the third one writes it. Try other weights:
they are the tenths of the calls that stay with OLD, so 10 is only OLD, 0 only NEW.

The README goes on from here: version control, grey release and lanes by labels have
instances of their own here, to which its tours lead.

Calls that the organization service answered, through the gateway (Ctrl-C stops
everything):
`, gateway+licensePath, routes, record, routes)
}

// local writes a URL as a person does.
func local(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }
