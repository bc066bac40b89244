package api

import (
	"errors"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/gateways"
	"specialroutes.example/specialroutes/internal/store"
)

// bookPage is a page of the book's view.
type bookPage struct {
	Records []routing.Book `json:"records"`
	LeftOut int            `json:"leftOut"`
	Next    string         `json:"next,omitzero"`
}

func (a *api) listBook(c *gin.Context) error {
	stored, next, err := a.listPage(c)
	if err != nil {
		return err
	}
	p := bookPage{Records: []routing.Book{}, Next: next}
	for i := range stored {
		book, err := bookOf(&stored[i])
		if err != nil {
			p.LeftOut++
			continue
		}
		p.Records = append(p.Records, book)
	}
	return writeJSON(c, http.StatusOK, p)
}

// listPage returns the records of the page that is asked for, as far as the token is
// for them, and where the next page begins, "" on the last one.
func (a *api) listPage(c *gin.Context) (records []store.Stored, next string, err error) {
	after, limit, err := page(c)
	if err != nil {
		return nil, "", err
	}
	stored, err := a.Store.List(c.Request.Context(), after, limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(stored) > limit {
		stored = stored[:limit]
		next = stored[limit-1].Service
	}
	token := tokenOf(c)
	for _, s := range stored {
		if token.Covers(s.Service) {
			records = append(records, s)
		}
	}
	return records, next, nil
}

func (a *api) getBook(c *gin.Context) error {
	stored, cond, err := a.beginRead(c, serviceName)
	if err != nil {
		return err
	}
	book, err := bookOf(&stored)
	if err != nil {
		return err
	}
	c.Header("ETag", stored.ETag())
	if cond.notModified(stored.ETag()) {
		noContent(c, http.StatusNotModified)
		return nil
	}
	return writeJSON(c, http.StatusOK, book)
}

// bookWritten is the answer to a PUT of the book's view.
type bookWritten struct {
	routing.Book
	Applied *gateways.Progress `json:"applied,omitzero"`
}

func (a *api) putBook(c *gin.Context) error {
	var book routing.Book
	w, err := a.beginWrite(c, serviceName, &book)
	if err != nil {
		return err
	}
	if err := a.checkBook(&book, w.service); err != nil {
		return err
	}
	stored, before, err := a.write(c, w, func(before *store.Stored) (*routing.Record, error) {
		if before == nil {
			return routing.FromBook(book, nil, a.rules...)
		}
		if _, err := bookOf(before); err != nil {
			return nil, err
		}
		return routing.FromBook(book, before.Record, a.rules...)
	})
	if err != nil {
		return err
	}
	if book, err = bookOf(&stored); err != nil {
		return err
	}
	answer := bookWritten{Book: book, Applied: a.applied(c, w, w.service, stored.Cursor())}
	c.Header("ETag", stored.ETag())
	if before == nil {
		c.Header("Location", "/v1/route/abtesting/"+w.service)
		return writeJSON(c, http.StatusCreated, answer)
	}
	return writeJSON(c, http.StatusOK, answer)
}

// checkBook finds all mistakes of a book's record before the store is asked: what
// will be refused need not wait for other writers. The document names its service,
// as a whole record does, so that one sent to the wrong path is noticed.
func (a *api) checkBook(b *routing.Book, service string) error {
	_, err := routing.FromBook(*b, nil, a.rules...)
	mistakes, ok := errors.AsType[routing.ValidationError](err)
	if err != nil && !ok {
		return err
	}
	const name = "/serviceName"
	named := func(f routing.FieldError) bool { return f.Pointer == name }
	if !slices.ContainsFunc(mistakes, named) && *b.ServiceName != service {
		mistakes = append(mistakes, routing.FieldError{Pointer: name, Detail: "the path names another service"})
	}
	return mistakes.Err()
}

func (a *api) deleteBook(c *gin.Context) error {
	w, err := a.beginWrite(c, serviceName, nil)
	if err != nil {
		return err
	}
	_, _, err = a.write(c, w, func(before *store.Stored) (*routing.Record, error) {
		if before == nil {
			return nil, store.ErrNotFound
		}
		_, err := bookOf(before)
		return nil, err
	})
	if err != nil {
		return err
	}
	noContent(c, http.StatusNoContent)
	return nil
}

// bookOf returns a record in the book's view, or why that cannot be.
func bookOf(s *store.Stored) (routing.Book, error) {
	if s.Broken != "" {
		return routing.Book{}, errBroken(s)
	}
	book, err := routing.ToBook(s.Record)
	if errors.Is(err, routing.ErrNotExpressible) {
		f := refuse(http.StatusConflict, "not_expressible", "The book's view cannot express this record.")
		return routing.Book{}, f.at(s.Service)
	}
	return book, err
}
