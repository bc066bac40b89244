package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/store"
)

// writing is what every change of a record comes with.
type writing struct {
	service    string
	author     store.Author
	conditions conditions
}

func readWrite(c *gin.Context) (writing, error) {
	service, err := serviceName(c)
	if err != nil {
		return writing{}, err
	}
	who, err := author(c)
	if err != nil {
		return writing{}, err
	}
	cond, err := readConditions(c.Request.Header)
	return writing{service: service, author: who, conditions: cond}, err
}

// write makes a change if its conditions hold, and tells the followers.
func (a *api) write(c *gin.Context, w writing, change store.ChangeFunc) (store.Stored, error) {
	stored, err := a.Store.Write(c.Request.Context(), w.service, w.author, func(before *store.Stored) (*routing.Record, error) {
		if err := w.conditions.check(before); err != nil {
			return nil, err
		}
		return change(before)
	})
	if err != nil {
		return store.Stored{}, err
	}
	a.Feed.Wake()
	return stored, nil
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

// errTokenForAll is for what shows all services.
func errTokenForAll(name string) error {
	return refuse(http.StatusForbidden, "forbidden", "The token "+name+" is not for all services.")
}
