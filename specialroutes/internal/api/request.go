package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"specialroutes.example/services/problem"
	"specialroutes.example/services/routing"
	"specialroutes.example/services/strictjson"
	"specialroutes.example/specialroutes/internal/store"
)

const (
	maxBody          = 1 << 20 // bytes
	maxAfter         = 255     // bytes
	maxAfterInstance = 63 + 1 + routing.MaxInstanceID
	maxWhy           = 500  // characters
	stdLimit         = 100  // records on a page
	maxLimit         = 1000 // records on a page
	nameRules        = "want 1 to 63 of a-z, 0-9 and -, with neither end a -"
)

var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// routeName returns the service in the path of a full record, which may be the
// wildcard, if the token is for it.
func routeName(c *gin.Context) (string, error) {
	name := c.Param("service")
	if name != routing.Wildcard && !namePattern.MatchString(name) {
		return "", badParameter("service", nameRules+", or *")
	}
	return name, checkCovers(c, name)
}

// instanceName returns the instance in the path, if the token is for its service.
func instanceName(c *gin.Context) (store.Instance, error) {
	of := store.Instance{Service: c.Param("service"), ID: c.Param("id")}
	if !namePattern.MatchString(of.Service) {
		return of, badParameter("service", nameRules)
	}
	if !routing.ValidInstance(of.ID) {
		return of, badParameter("id", "want 1 to 255 characters of visible ASCII, escaped")
	}
	return of, checkCovers(c, of.Service)
}

// serviceName returns the service in the path of the book's view, if the token is
// for it.
func serviceName(c *gin.Context) (string, error) {
	name := c.Param("serviceName")
	if !namePattern.MatchString(name) {
		return "", badParameter("serviceName", nameRules)
	}
	return name, checkCovers(c, name)
}

// checkQuery refuses what cannot be read, parameters that an operation does not
// know (a mistyped dryRun would be a write), and those given twice. All at once.
func checkQuery(raw string, o operation) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return badParameter("", "the query string cannot be read")
	}
	var mistakes []problem.FieldError
	for name, v := range values {
		known := slices.Contains(o.parameters, name)
		switch {
		case !known && !o.lenient:
			mistakes = append(mistakes, problem.FieldError{Pointer: capped(name), Detail: "there is no such parameter here"})
		case known && len(v) > 1:
			mistakes = append(mistakes, problem.FieldError{Pointer: name, Detail: "given more than once"})
		}
	}
	if mistakes == nil {
		return nil
	}
	slices.SortFunc(mistakes, func(a, b problem.FieldError) int { return strings.Compare(a.Pointer, b.Pointer) })
	return refuse(http.StatusBadRequest, "bad_request", "The request has a mistake.", mistakes...)
}

// limit returns the parameter limit.
func limit(c *gin.Context) (int, error) {
	s, given := c.GetQuery("limit")
	if !given {
		return stdLimit, nil
	}
	limit, err := strconv.Atoi(s)
	if err != nil || limit < 1 || limit > maxLimit || strconv.Itoa(limit) != s {
		return 0, badParameter("limit", "want an integer from 1 to 1000")
	}
	return limit, nil
}

// page returns the parameters after and limit.
func page(c *gin.Context) (after string, most int, err error) {
	if most, err = limit(c); err != nil {
		return "", 0, err
	}
	after = c.Query("after")
	if len(after) > maxAfter || !isText(after) {
		return "", 0, badParameter("after", "want the name of a service")
	}
	return after, most, nil
}

// author says who makes a change, and why.
func author(c *gin.Context) (store.Author, error) {
	why := c.Query("why")
	if utf8.RuneCountInString(why) > maxWhy || !isText(why) {
		return store.Author{}, badParameter("why", "want at most 500 characters, without control characters")
	}
	return store.Author{Who: tokenOf(c).Name, Why: why}, nil
}

// isText says whether s can be stored and shown: valid UTF-8 without control
// characters.
func isText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// readBody decodes a request's body into v.
func (a *api) readBody(c *gin.Context, v any) error {
	if err := checkMediaType(c.Request.Header); err != nil {
		return err
	}
	data, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return refuse(http.StatusRequestEntityTooLarge, "body_too_large", "A body may have 1 MiB.", problem.FieldError{Pointer: "", Detail: "more than 1048576 bytes"})
	}
	if err != nil {
		status, code := http.StatusBadRequest, "bad_request"
		if errors.Is(err, os.ErrDeadlineExceeded) {
			status, code = http.StatusRequestTimeout, "body_too_slow"
			c.Header("Connection", "close")
		}
		f := refuse(status, code, "The body did not arrive whole.", problem.FieldError{Pointer: "", Detail: "cut short"})
		f.cause = err
		return f
	}
	_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Time{}) // it is there; see limitBody
	return strictjson.Decode(data, v)
}

// limitBody bounds the time that a body may take: net/http has a limit on the head
// only. It holds also for a body that nobody reads, which net/http reads to its end
// to keep the connection.
func (a *api) limitBody(c *gin.Context) {
	if c.Request.ContentLength != 0 {
		_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(a.BodyTimeout))
	}
}

// checkMediaType refuses all but plain JSON. A form that a browser sends across
// sites is never that.
func checkMediaType(h http.Header) error {
	mediaType, parameters, err := mime.ParseMediaType(h.Get("Content-Type"))
	charset, given := parameters["charset"]
	switch {
	case err != nil || mediaType != "application/json" || len(h["Content-Type"]) > 1,
		given && !strings.EqualFold(charset, "utf-8"):
		return refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "A body is JSON.", problem.FieldError{Pointer: "Content-Type", Detail: "want application/json"})
	case h.Get("Content-Encoding") != "":
		return refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "A body is not encoded.", problem.FieldError{Pointer: "Content-Encoding", Detail: "want none"})
	}
	return nil
}
