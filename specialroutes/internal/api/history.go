package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"specialroutes.example/services/problem"
	"specialroutes.example/services/routing"
	"specialroutes.example/services/strictjson"
	"specialroutes.example/specialroutes/internal/store"
)

// historyPage is a page of the history of a record, or of an instance's labels.
type historyPage struct {
	Entries []historyEntry `json:"entries"`
	Next    int64          `json:"next,omitzero"`
}

type historyEntry struct {
	Revision int64           `json:"revision"`
	ETag     string          `json:"etag"`
	At       time.Time       `json:"at"`
	Who      string          `json:"who"`
	Why      string          `json:"why"`
	Before   json.RawMessage `json:"before"` // null: there was none
	After    json.RawMessage `json:"after"`  // null: deleted
}

func (a *api) history(c *gin.Context) error {
	service, err := routeName(c)
	if err != nil {
		return err
	}
	return answerHistory(c, func(ctx context.Context, before int64, limit int) ([]historyEntry, error) {
		entries, err := a.Store.History(ctx, service, before, limit)
		list := make([]historyEntry, 0, len(entries))
		for _, e := range entries {
			list = append(list, entryOf(store.Cursor{Revision: e.Revision, Nonce: e.Nonce}, e.Author, e.At, e.Before, e.After))
		}
		return list, err
	})
}

func entryOf(at store.Cursor, by store.Author, when time.Time, before, after json.RawMessage) historyEntry {
	return historyEntry{
		Revision: at.Revision, ETag: at.ETag(), At: when,
		Who: by.Who, Why: by.Why, Before: before, After: after,
	}
}

// answerHistory answers with a page of what read returns, the newest entries before a
// revision first.
func answerHistory(c *gin.Context, read func(ctx context.Context, before int64, limit int) ([]historyEntry, error)) error {
	limit, err := limit(c)
	if err != nil {
		return err
	}
	var before int64
	if s, given := c.GetQuery("before"); given {
		before, err = strconv.ParseInt(s, 10, 64)
		if err != nil || before < 1 || strconv.FormatInt(before, 10) != s {
			return badParameter("before", "want a revision")
		}
	}
	entries, err := read(c.Request.Context(), before, limit+1)
	if err != nil {
		return err
	}
	p := historyPage{Entries: entries}
	if len(entries) > limit {
		p.Entries, p.Next = entries[:limit], entries[limit-1].Revision
	}
	return writeJSON(c, http.StatusOK, p)
}

// rollbackBody is what POST …/rollback takes.
type rollbackBody struct {
	Revision *int64 `json:"revision"`
}

func (a *api) rollback(c *gin.Context) error {
	var body rollbackBody
	w, err := a.beginWrite(c, routeName, &body)
	if err != nil {
		return err
	}
	if body.Revision == nil {
		return missing("/revision")
	}
	record, err := a.recordAfter(c, w.service, *body.Revision)
	if err != nil {
		return err
	}
	if w.author.Why == "" {
		w.author.Why = fmt.Sprintf("back to revision %d", *body.Revision)
	}
	return a.change(c, w, func(before *store.Stored) (*routing.Record, error) {
		if record == nil && before == nil {
			return nil, store.ErrNotFound
		}
		return record, nil
	})
}

// recordAfter returns what a revision left behind, nil if it was a delete.
func (a *api) recordAfter(c *gin.Context, service string, revision int64) (*routing.Record, error) {
	wrong := func(detail string) error {
		return refuse(http.StatusUnprocessableEntity, "invalid_record", "There is nothing to go back to.",
			problem.FieldError{Pointer: "/revision", Detail: detail})
	}
	if revision < 1 || revision == 1<<63-1 {
		return nil, wrong("must be a revision of the record's history")
	}
	entries, err := a.Store.History(c.Request.Context(), service, revision+1, 1)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 || entries[0].Revision != revision {
		return nil, wrong("is not in the record's history")
	}
	if entries[0].After == nil {
		return nil, nil //nolint:nilnil // it was a delete
	}
	record := new(routing.Record)
	if err := strictjson.Decode(entries[0].After, record); err != nil {
		return nil, wrong("left a record behind that cannot be read any more: " + err.Error())
	}
	if err := a.checkRecord(record, service); err != nil {
		return nil, wrong("left a record behind that is not valid any more: " + err.Error())
	}
	return record, nil
}
