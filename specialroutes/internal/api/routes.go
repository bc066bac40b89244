package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"specialroutes.example/services/problem"
	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/gateways"
	"specialroutes.example/specialroutes/internal/store"
)

// routePage is a page of the list.
type routePage struct {
	Routes []routeEntry `json:"routes"`
	Next   string       `json:"next,omitzero"`
}

type routeEntry struct {
	Service  string          `json:"service"`
	Revision int64           `json:"revision"`
	ETag     string          `json:"etag"`
	Record   json.RawMessage `json:"record"`
	Broken   string          `json:"broken,omitzero"`
	Warnings []string        `json:"warnings,omitempty"`
}

// written is the answer to a change.
type written struct {
	Service  string             `json:"service"`
	Revision int64              `json:"revision"`
	Record   json.RawMessage    `json:"record"` // null after a delete
	Warnings []string           `json:"warnings,omitempty"`
	Applied  *gateways.Progress `json:"applied,omitzero"`
}

func (a *api) listRoutes(c *gin.Context) error {
	stored, next, err := a.listPage(c)
	if err != nil {
		return err
	}
	p := routePage{Routes: []routeEntry{}, Next: next}
	for _, s := range stored {
		p.Routes = append(p.Routes, routeEntry{
			Service: s.Service, Revision: s.Revision, ETag: s.ETag(),
			Record: s.Raw, Broken: s.Broken, Warnings: warnings(s.Record, time.Now()),
		})
	}
	return writeJSON(c, http.StatusOK, p)
}

// warnings says what somebody should look at in a record; nil is none.
func warnings(r *routing.Record, now time.Time) []string {
	if r != nil && r.Ended(now) {
		return []string{fmt.Sprintf("The record was to end on %s. It is in force until somebody deletes it.", *r.Ends)}
	}
	return nil
}

// beginRead reads the record of the service that name finds in the path, and the
// conditions that its reader sets.
func (a *api) beginRead(c *gin.Context, name func(*gin.Context) (string, error)) (store.Stored, conditions, error) {
	service, err := name(c)
	if err != nil {
		return store.Stored{}, conditions{}, err
	}
	cond, err := readConditions(c.Request.Header)
	if err != nil {
		return store.Stored{}, conditions{}, err
	}
	stored, err := a.Store.Get(c.Request.Context(), service)
	return stored, cond, err
}

func (a *api) getRoute(c *gin.Context) error {
	stored, cond, err := a.beginRead(c, routeName)
	if err != nil {
		return err
	}
	c.Header("ETag", stored.ETag())
	if cond.notModified(stored.ETag()) {
		noContent(c, http.StatusNotModified)
		return nil
	}
	if stored.Broken != "" {
		return errBroken(&stored)
	}
	return writeJSON(c, http.StatusOK, stored.Raw)
}

func (a *api) putRoute(c *gin.Context) error {
	record := new(routing.Record)
	w, err := a.beginWrite(c, routeName, record)
	if err != nil {
		return err
	}
	if err := a.checkRecord(record, w.service); err != nil {
		return err
	}
	return a.change(c, w, func(*store.Stored) (*routing.Record, error) { return record, nil })
}

// checkRecord finds all mistakes of a record that is to be stored for a service.
func (a *api) checkRecord(r *routing.Record, service string) error {
	return checkOf(r, service, "the path names another service", a.rules).Err()
}

// checkOf finds all mistakes of a record that must be that of a service; another
// is what to say where it is not. A name that is none is one mistake, not two.
func checkOf(r *routing.Record, service, another string, rules []routing.Option) routing.ValidationError {
	mistakes := r.Validate(rules...)
	isService := func(m routing.FieldError) bool { return m.Pointer == "/service" }
	if r.Service != service && !slices.ContainsFunc(mistakes, isService) {
		mistakes = slices.Insert(mistakes, 0, routing.FieldError{Pointer: "/service", Detail: another})
	}
	return mistakes
}

func (a *api) deleteRoute(c *gin.Context) error {
	w, err := a.beginWrite(c, routeName, nil)
	if err != nil {
		return err
	}
	return a.change(c, w, func(before *store.Stored) (*routing.Record, error) {
		if before == nil {
			return nil, store.ErrNotFound
		}
		return nil, nil //nolint:nilnil // nil deletes
	})
}

// change makes a change, or tells what it would do, and answers.
func (a *api) change(c *gin.Context, w writing, change store.ChangeFunc) error {
	if w.dryRun {
		return a.preview(c, w, change)
	}
	stored, before, err := a.write(c, w, change)
	if err != nil {
		return err
	}
	answer := written{Service: w.service, Revision: stored.Revision, Record: stored.Raw, Warnings: warnings(stored.Record, time.Now())}
	answer.Applied = a.applied(c, w, w.service, stored.Cursor())
	status := http.StatusOK
	if stored.Record != nil {
		c.Header("ETag", stored.ETag())
		if before == nil {
			status = http.StatusCreated
			c.Header("Location", "/v1/routes/"+w.service)
		}
	}
	return writeJSON(c, status, answer)
}

// preview answers with what a change would do.
func (a *api) preview(c *gin.Context, w writing, change store.ChangeFunc) error {
	var before *store.Stored
	stored, err := a.Store.Get(c.Request.Context(), w.service)
	switch {
	case err == nil:
		before = &stored
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	after, err := w.decide(before, change)
	if err != nil {
		return err
	}
	d, err := newDryRun(w.service, before, after)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, d)
}

// usable returns the record that a partial change is made to.
func usable(before *store.Stored) (*routing.Record, error) {
	switch {
	case before == nil:
		return nil, store.ErrNotFound
	case before.Broken != "":
		return nil, errBroken(before)
	}
	return before.Record, nil
}

// errBroken says that a stored record cannot be used, and why.
func errBroken(s *store.Stored) error {
	f := refuse(http.StatusConflict, "record_broken", "The stored record cannot be used: "+s.Broken).at(s.Service)
	f.problem.Members["record"] = s.Raw
	return f
}

// at adds the way to the record's full view.
func (f *failure) at(service string) *failure {
	path := "/v1/routes/" + service
	f.problem.Members = map[string]any{"route": path}
	return f.with("Link", "<"+path+`>; rel="alternate"`)
}

// missing is the mistake of a member that is not there.
func missing(pointer string) error {
	return refuse(http.StatusUnprocessableEntity, "invalid_record", "The document must not be stored as it is.",
		problem.FieldError{Pointer: pointer, Detail: "is missing"})
}
