package records

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/strictjson"
)

// longestCursor bounds what is sent back in a query. A cursor is a number and a
// nonce.
const longestCursor = 128

// envelope is an answer to GET /v1/changes. Members that it does not know are
// ignored: newer versions may say more. The file holds the same, always full,
// with a few members of its own.
type envelope struct {
	Cursor  string           `json:"cursor"`
	Full    bool             `json:"full"`
	Records []jsontext.Value `json:"records"` // items; nil where absent
	Deleted []string         `json:"deleted"`

	InstanceLabels        []jsontext.Value `json:"instanceLabels"`        // label items; nil where absent
	InstanceLabelsDeleted []jsontext.Value `json:"instanceLabelsDeleted"` // label items that name an instance

	fileOnly
}

// fileOnly are the members that the file has beside those of an answer.
type fileOnly struct {
	AsOf           time.Time        `json:"asOf,omitzero"`
	SetAside       []jsontext.Value `json:"setAside,omitempty"`       // items with reason and since
	LabelsSetAside []jsontext.Value `json:"labelsSetAside,omitempty"` // label items with reason and since
	Instances      jsontext.Value   `json:"instances,omitzero"`       // as Options.Instances made it
}

// item is one element of envelope.Records or envelope.SetAside.
type item struct {
	Service  string         `json:"service"`
	Revision jsontext.Value `json:"revision,omitzero"`
	Record   jsontext.Value `json:"record,omitzero"`

	// Of the file's SetAside only.
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// lenient lets a mistake inside one record pass here, so that it costs that
// record alone: records are decoded by strictjson afterwards, one by one.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

var (
	// errNoCursor is what most answers that are no envelope at all amount to.
	errNoCursor = errors.New("the answer has no usable cursor")
	// errNotFull is an answer to a first question that would leave us with a part.
	errNotFull = errors.New("the answer is not full, and there is nothing to apply it over")
)

// decodeEnvelope reads an envelope and refuses what cannot be one. Beside errNoCursor
// it returns what there is without a cursor.
func decodeEnvelope(text []byte) (*envelope, error) {
	e := new(envelope)
	if err := json.Unmarshal(text, e, lenient); err != nil {
		return nil, fmt.Errorf("the answer is no envelope of changes: %w", err)
	}
	if !usableCursor(e.Cursor) {
		return e, errNoCursor
	}
	// Anything that answers {"cursor":…,"full":true} would otherwise empty the table.
	if e.Full && e.Records == nil {
		return nil, errors.New("the answer is full and has no list of records")
	}
	return e, nil
}

func usableCursor(c string) bool {
	for i := range len(c) {
		if c[i] < 0x21 || c[i] > 0x7e {
			return false
		}
	}
	return c != "" && len(c) <= longestCursor
}

// cursorRevision is the number in a cursor, for a gauge; to all else a cursor is
// opaque. It is -1 where there is none.
func cursorRevision(cursor string) int64 {
	for i := range len(cursor) {
		if cursor[i] == '.' {
			if n, err := strconv.ParseInt(cursor[:i], 10, 64); err == nil {
				return n
			}
		}
	}
	return -1
}

// candidate is an item that was taken apart. Reason says why its record cannot be
// used, "" that it could be decoded.
type candidate struct {
	service string
	version version
	record  *routing.Record
	reason  string
	since   time.Time // zero: now
}

// decodeItem takes an item apart. What is wrong with it is told in the reason, and
// the service is "" where even that is not known.
func decodeItem(text jsontext.Value) candidate {
	var it item
	if err := json.Unmarshal(text, &it, lenient); err != nil {
		return candidate{version: version{noRevision, text}, reason: "the item of the answer cannot be read"}
	}
	c := candidate{service: it.Service, version: version{noRevision, it.Record}, since: it.Since}
	n, err := strconv.ParseInt(string(it.Revision), 10, 64)
	switch {
	case it.Service == "":
		c.reason = "the item of the answer names no service"
	case err != nil || n < 0:
		c.reason = "the item of the answer has no revision"
	case len(it.Record) == 0:
		c.reason = "the item of the answer has no record"
	default:
		c.version.revision = n
		c.record, c.reason = decodeRecord(it.Service, it.Record)
	}
	return c
}

// decodeRecord reads a record strictly.
func decodeRecord(service string, text jsontext.Value) (*routing.Record, string) {
	r := new(routing.Record)
	if err := strictjson.Decode(text, r); err != nil {
		return nil, err.Error()
	}
	if r.Service != service {
		return nil, fmt.Sprintf("/service: is %q in the record and %q around it", r.Service, service)
	}
	return r, ""
}
