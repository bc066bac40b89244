package main

import (
	"bufio"
	"bytes"
	"testing"
)

func TestReader_CountsTheCallsOfTheOrganizationService(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := &reader{newPort: "8087", log: bufio.NewReader(&log)}
	for i, step := range []struct {
		text string
		want tally
	}{
		{"", tally{}},
		{`{"service":"organizationservice","status":200,"instance":"orgservice-old"}` + "\n", tally{old: 1}},
		{`{"service":"organizationservice","status":200,"instance":"localhost:8087"}` + "\n", tally{old: 1, new: 1}},
		{`{"service":"organizationservice","status":404,"instance":"127.0.0.1:8087"}` + "\n", tally{old: 1, new: 2}},
		{`{"service":"organizationservice","status":503,"instance":""}` + "\n", tally{old: 1, new: 2, other: 1}},
		{`{"service":"licensingservice","status":200,"instance":"licensingservice"}` + "\n", tally{old: 1, new: 2, other: 1}},
		{`{"service":"gateway","level":"INFO","msg":"listening"}` + "\nnot JSON\n", tally{old: 1, new: 2, other: 1}},
		{`{"service":"organizationservice","status":200,`, tally{old: 1, new: 2, other: 1}}, // half a line
		{`"instance":"orgservice-old"}` + "\n", tally{old: 2, new: 2, other: 1}},
	} {
		log.WriteString(step.text)
		if err := r.read(); err != nil || r.tally != step.want {
			t.Errorf("step %d: tally = %+v, %v, want %+v", i, r.tally, err, step.want)
		}
	}
	if got, want := r.tally.String(), "OLD 2   NEW 2   others 1"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
}
