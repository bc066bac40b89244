package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"specialroutes.example/services/problem"
	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/gateways"
	"specialroutes.example/specialroutes/internal/store"
)

// writing is what every change comes with.
type writing struct {
	service    string
	author     store.Author
	conditions conditions
	dryRun     bool
	wait       bool // until it is applied
}

// beginWrite reads what a change of a record comes with: the service that name finds
// in the path, what readWrite reads, and the body into a value; nil is no body.
func (a *api) beginWrite(c *gin.Context, name func(*gin.Context) (string, error), body any) (writing, error) {
	service, err := name(c)
	if err != nil {
		return writing{}, err
	}
	w, err := readWrite(c, service)
	if err == nil && body != nil {
		err = a.readBody(c, body)
	}
	return w, err
}

// readWrite reads who makes a change, why, and how; service is from the path.
func readWrite(c *gin.Context, service string) (writing, error) {
	w := writing{service: service}
	var err error
	if w.author, err = author(c); err != nil {
		return w, err
	}
	if w.conditions, err = readConditions(c.Request.Header); err != nil {
		return w, err
	}
	switch s, given := c.GetQuery("dryRun"); {
	case s == "true":
		w.dryRun = true
	case given && s != "false":
		return w, badParameter("dryRun", "want true or false")
	}
	switch s, given := c.GetQuery("wait"); {
	case s == "applied":
		w.wait = true
	case given:
		return w, badParameter("wait", "want applied")
	}
	if w.wait && w.dryRun {
		return w, refuse(http.StatusBadRequest, "bad_request", "The request has a mistake.",
			problem.FieldError{Pointer: "wait", Detail: "a dry run changes nothing that could be waited for"})
	}
	return w, nil
}

// write makes a change if its conditions hold, and tells the followers. before is
// the record that it replaced, nil when there was none.
func (a *api) write(c *gin.Context, w writing, change store.ChangeFunc) (stored store.Stored, before *store.Stored, err error) {
	stored, err = a.Store.Write(c.Request.Context(), w.service, w.author, func(b *store.Stored) (*routing.Record, error) {
		before = b
		return w.decide(b, change)
	})
	if err != nil {
		return store.Stored{}, nil, err
	}
	a.Feed.Wake()
	return stored, before, nil
}

// decide is the change, if the conditions hold.
func (w writing) decide(before *store.Stored, change store.ChangeFunc) (*routing.Record, error) {
	etag := ""
	if before != nil {
		etag = before.ETag()
	}
	if err := w.conditions.check(etag); err != nil {
		return nil, err
	}
	return change(before)
}

// applied waits until a change is in force everywhere, if that was asked for, and
// returns how far it got, else nil. at is its place, and changed what store.Gateway
// calls it in SetAside. The change is stored: what happens here is no error of it.
func (a *api) applied(c *gin.Context, w writing, changed string, at store.Cursor) *gateways.Progress {
	if !w.wait {
		return nil
	}
	p, err := a.Gateways.Await(c.Request.Context(), changed, at, a.Draining.Begun())
	if err != nil {
		if !errors.Is(err, c.Request.Context().Err()) {
			a.Log.Warn("how far a change has got is not known", "service", w.service, "error", err)
		}
		return nil
	}
	return &p
}

// writeJSON answers with a document.
func writeJSON(c *gin.Context, status int, v any) error {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false) // an endpoint reads as it was written
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encoding an answer: %w", err)
	}
	h := c.Writer.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	c.Writer.WriteHeader(status)
	_, _ = c.Writer.Write(body.Bytes()) // a client that has gone is nobody's fault
	return nil
}

// noContent answers without a document.
func noContent(c *gin.Context, status int) {
	c.Status(status)
	c.Writer.WriteHeaderNow()
}
