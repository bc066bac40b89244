package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/gateways"
	"specialroutes.example/specialroutes/internal/store"
)

// labelsPage is a page of the list of instances whose labels are changed.
type labelsPage struct {
	Instances []labelsEntry `json:"instances"`
	Next      string        `json:"next,omitzero"`
}

type labelsEntry struct {
	changedLabels
	ETag   string `json:"etag"`
	Broken string `json:"broken,omitzero"`
}

// labelsWritten is the answer to a change of labels.
type labelsWritten struct {
	instance
	Revision int64              `json:"revision"`
	Labels   json.RawMessage    `json:"labels"` // null after a delete
	Ends     *time.Time         `json:"ends"`   // null after a delete
	Applied  *gateways.Progress `json:"applied,omitzero"`
}

// labelsDryRun is what a change of labels would do.
type labelsDryRun struct {
	DryRun bool `json:"dryRun"`
	instance
	Before  *labelsDocument `json:"before"`
	After   *labelsDocument `json:"after"`
	Changes []difference    `json:"changes"`
}

// labelsDocument is what PUT takes, as it is answered.
type labelsDocument struct {
	Labels json.RawMessage `json:"labels"`
	Ends   time.Time       `json:"ends"`
}

func (a *api) listLabels(c *gin.Context) error {
	service := c.Query("service")
	if _, given := c.GetQuery("service"); given {
		if !namePattern.MatchString(service) {
			return badParameter("service", nameRules)
		}
		if err := checkCovers(c, service); err != nil {
			return err
		}
	}
	limit, err := limit(c)
	if err != nil {
		return err
	}
	after := c.Query("after")
	var last store.Instance
	var isName bool
	last.Service, last.ID, isName = strings.Cut(after, "/")
	if len(after) > maxAfterInstance || !isText(after) || after != "" && !isName {
		return badParameter("after", "want the next of an earlier page, which is service/id")
	}
	stored, err := a.Store.ListLabels(c.Request.Context(), service, last, limit+1)
	if err != nil {
		return err
	}
	p := labelsPage{Instances: []labelsEntry{}}
	if len(stored) > limit {
		stored = stored[:limit]
		p.Next = stored[limit-1].Name()
	}
	token, now := tokenOf(c), a.Now()
	for _, l := range stored {
		if token.Covers(l.Service) && !l.Ended(now) {
			p.Instances = append(p.Instances, labelsEntry{changedLabelsOf(&l), l.ETag(), l.Broken})
		}
	}
	return writeJSON(c, http.StatusOK, p)
}

func (a *api) getLabels(c *gin.Context) error {
	of, err := instanceName(c)
	if err != nil {
		return err
	}
	cond, err := readConditions(c.Request.Header)
	if err != nil {
		return err
	}
	stored, err := a.Store.GetLabels(c.Request.Context(), of)
	if err != nil {
		return err
	}
	if stored.Ended(a.Now()) {
		return store.ErrNoLabels
	}
	c.Header("ETag", stored.ETag())
	if cond.notModified(stored.ETag()) {
		noContent(c, http.StatusNotModified)
		return nil
	}
	if stored.Broken != "" {
		return refuse(http.StatusConflict, "labels_broken", "The stored labels cannot be used: "+stored.Broken)
	}
	return writeJSON(c, http.StatusOK, documentOf(&stored))
}

func (a *api) putLabels(c *gin.Context) error {
	of, w, err := beginLabels(c)
	if err != nil {
		return err
	}
	var body routing.InstanceLabels
	if err := a.readBody(c, &body); err != nil {
		return err
	}
	if err := body.ValidateNew(a.Now()).Err(); err != nil {
		return err
	}
	next := &store.NewLabels{Changes: body.Labels, Ends: body.EndsAt()}
	return a.changeLabels(c, of, w, func(*store.Labels) (*store.NewLabels, error) { return next, nil })
}

func (a *api) deleteLabels(c *gin.Context) error {
	of, w, err := beginLabels(c)
	if err != nil {
		return err
	}
	return a.changeLabels(c, of, w, func(before *store.Labels) (*store.NewLabels, error) {
		if before == nil {
			return nil, store.ErrNoLabels
		}
		return nil, nil //nolint:nilnil // nil deletes
	})
}

func beginLabels(c *gin.Context) (store.Instance, writing, error) {
	of, err := instanceName(c)
	if err != nil {
		return of, writing{}, err
	}
	w, err := readWrite(c, of.Service)
	return of, w, err
}

// changeLabels makes a change if its conditions hold, or tells what it would do, and
// answers. To change, labels that have ended are not there.
func (a *api) changeLabels(c *gin.Context, of store.Instance, w writing, change store.LabelsFunc) error {
	var before *store.Labels
	decide := func(stored *store.Labels) (*store.NewLabels, error) {
		etag := ""
		if stored != nil && !stored.Ended(a.Now()) {
			before, etag = stored, stored.ETag()
		}
		if err := w.conditions.check(etag); err != nil {
			return nil, err
		}
		return change(before)
	}
	if w.dryRun {
		return a.previewLabels(c, of, decide)
	}
	stored, err := a.Store.WriteLabels(c.Request.Context(), of, w.author, decide)
	if err != nil {
		return err
	}
	a.Feed.Wake()
	answer := labelsWritten{
		instance: instance{of.Service, of.ID}, Revision: stored.Revision, Labels: stored.Raw,
		Applied: a.applied(c, w, of.Name(), stored.Cursor()),
	}
	status := http.StatusOK
	if stored.Raw != nil {
		answer.Ends = &stored.Ends
		c.Header("ETag", stored.ETag())
		if before == nil {
			status = http.StatusCreated
			c.Header("Location", "/v1/instances/"+of.Service+"/"+url.PathEscape(of.ID)+"/labels")
		}
	}
	return writeJSON(c, status, answer)
}

// previewLabels answers with what a change would do.
func (a *api) previewLabels(c *gin.Context, of store.Instance, decide store.LabelsFunc) error {
	var before *store.Labels
	stored, err := a.Store.GetLabels(c.Request.Context(), of)
	switch {
	case err == nil:
		before = &stored
	case !errors.Is(err, store.ErrNoLabels):
		return err
	}
	next, err := decide(before)
	if err != nil {
		return err
	}
	d := labelsDryRun{DryRun: true, instance: instance{of.Service, of.ID}}
	if before != nil && before.Broken == "" && !before.Ended(a.Now()) {
		d.Before = documentOf(before)
	}
	if next != nil {
		raw, err := json.Marshal(next.Changes)
		if err != nil {
			return err
		}
		d.After = &labelsDocument{raw, next.Ends}
	}
	if d.Changes, err = differences(d.Before, d.After); err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, d)
}

func documentOf(l *store.Labels) *labelsDocument { return &labelsDocument{l.Raw, l.Ends} }

func (a *api) labelsHistory(c *gin.Context) error {
	of, err := instanceName(c)
	if err != nil {
		return err
	}
	return answerHistory(c, func(ctx context.Context, before int64, limit int) ([]historyEntry, error) {
		entries, err := a.Store.LabelsHistory(ctx, of, before, limit)
		list := make([]historyEntry, 0, len(entries))
		for _, e := range entries {
			list = append(list, entryOf(store.Cursor{Revision: e.Revision, Nonce: e.Nonce}, e.Author, e.At, e.Before, e.After))
		}
		return list, err
	})
}
