package api

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"specialroutes.example/specialroutes/internal/feed"
	"specialroutes.example/specialroutes/internal/store"
)

// maxWait is the longest wait that a follower may ask for. Proxies between us are
// often set to cut what is silent for a minute.
const maxWait = 60 * time.Second

// envelope is the answer to a follower.
type envelope struct {
	Cursor                string          `json:"cursor"`
	Full                  bool            `json:"full"`
	Records               []changedRecord `json:"records"`
	Deleted               []string        `json:"deleted"`
	InstanceLabels        []changedLabels `json:"instanceLabels"`
	InstanceLabelsDeleted []instance      `json:"instanceLabelsDeleted"`
}

type changedRecord struct {
	Service  string          `json:"service"`
	Revision int64           `json:"revision"`
	Record   json.RawMessage `json:"record"`
}

// instance names an instance of a service.
type instance struct {
	Service string `json:"service"`
	ID      string `json:"id"`
}

type changedLabels struct {
	instance
	Revision int64           `json:"revision"`
	Labels   json.RawMessage `json:"labels"`
	Ends     time.Time       `json:"ends"`
}

func (a *api) changes(c *gin.Context) error {
	if t := tokenOf(c); !t.All() {
		return errTokenForAll(t.Name)
	}
	f, err := readFollower(c)
	if err != nil {
		return err
	}
	gateway, err := readGateway(c)
	if err != nil {
		return err
	}
	ask := feed.Ask{After: f.after, Wait: f.wait, Known: func(known bool) {
		switch {
		case gateway.ID == "":
			return
		case f.leaving:
			a.Gateways.Leave(c.Request.Context(), gateway.ID)
			return
		}
		if known { // what is of another history will be replaced by the answer
			gateway.Cursor = f.after
		}
		a.Gateways.Tell(c.Request.Context(), peerAddress(c.Request), gateway)
	}}
	changes, err := a.Feed.Changes(c.Request.Context(), ask)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, envelopeOf(&changes, a.Now()))
}

func envelopeOf(changes *store.Changes, now time.Time) envelope {
	e := envelope{
		Cursor:                feedCursor(changes.Cursor),
		Full:                  changes.Full,
		Records:               make([]changedRecord, 0, len(changes.Records)),
		Deleted:               append([]string{}, changes.Deleted...),
		InstanceLabels:        []changedLabels{},
		InstanceLabelsDeleted: []instance{},
	}
	for _, s := range changes.Records {
		e.Records = append(e.Records, changedRecord{Service: s.Service, Revision: s.Revision, Record: orEmpty(s.Raw)})
	}
	for _, of := range changes.LabelsDeleted {
		e.InstanceLabelsDeleted = append(e.InstanceLabelsDeleted, instance{of.Service, of.ID})
	}
	for _, l := range changes.Labels {
		of := instance{l.Service, l.ID}
		switch {
		case !l.Ended(now):
			e.InstanceLabels = append(e.InstanceLabels, changedLabelsOf(&l))
		case !changes.Full: // who knows of an older state is to forget it
			e.InstanceLabelsDeleted = append(e.InstanceLabelsDeleted, of)
		}
	}
	return e
}

func changedLabelsOf(l *store.Labels) changedLabels {
	return changedLabels{instance{l.Service, l.ID}, l.Revision, orEmpty(l.Raw), l.Ends}
}

// orEmpty returns a document as it is stored. One that is not even JSON is an empty
// one: the reader is to see that it cannot be used.
func orEmpty(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage(`{}`)
	}
	return raw
}

// cursorForm stands behind the cursors of those who were told of labels too. Versions
// that knew of records alone gave the bare pair out: whoever comes with one may hold
// labels that are not there any more, or lack some, and gets everything anew
// (docs/decisions/feed-of-two.md).
const cursorForm = "-2"

// feedCursor writes a place as followers are given it; the zero one is "".
func feedCursor(at store.Cursor) string {
	if at.IsZero() {
		return ""
	}
	return at.String() + cursorForm
}

// follower is what a follower asks.
type follower struct {
	after   store.Cursor
	wait    time.Duration
	leaving bool // it ends, and this is its last question
}

var (
	cursorPattern = regexp.MustCompile(`^[\x21-\x7E]{0,128}$`)
	waitPattern   = regexp.MustCompile(`^([0-9]{1,5})(ms|s)$`)
)

func readFollower(c *gin.Context) (follower, error) {
	var f follower
	after := c.Query("after")
	if !cursorPattern.MatchString(after) {
		return f, badParameter("after", "want the cursor of an earlier answer")
	}
	// A cursor that cannot be read is that of another version. It is answered like any
	// that is not known here: with everything.
	if pair, ok := strings.CutSuffix(after, cursorForm); ok {
		f.after, _ = store.ParseCursor(pair)
	}
	if s, given := c.GetQuery("wait"); given {
		var ok bool
		if f.wait, ok = readWait(s); !ok {
			return f, badParameter("wait", "want a time as 55s or 200ms, at most 60s")
		}
	}
	f.leaving = c.Query("leaving") == "true" // any other value says nothing, as with an older version
	if f.leaving {
		f.wait = 0
	}
	return f, nil
}

func readWait(s string) (time.Duration, bool) {
	m := waitPattern.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, false
	}
	unit := time.Second
	if m[2] == "ms" {
		unit = time.Millisecond
	}
	wait := time.Duration(n) * unit
	return wait, wait <= maxWait
}
