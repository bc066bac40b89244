package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"

	"specialroutes.example/services/problem"
	"specialroutes.example/services/strictjson"
)

const (
	// maxBody bounds a document that is sent to a demo service.
	maxBody = 64 << 10

	// MaxID bounds an ID, in bytes.
	MaxID = 128
)

// Read decodes a request's body into v. Its errors are Failures.
func Read(w http.ResponseWriter, req *http.Request, v any) error {
	if mediaType, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		f := Fail(http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must be application/json")
		f.Errors = []problem.FieldError{{Pointer: "Content-Type", Detail: "must be application/json"}}
		return f
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return Fail(http.StatusRequestEntityTooLarge, "body_too_large", "the body is over "+strconv.Itoa(maxBody)+" bytes")
	}
	if err != nil {
		return Fail(http.StatusBadRequest, "body_unreadable", "the body ended early")
	}
	var mistake *strictjson.Error
	if err := strictjson.Decode(data, v); errors.As(err, &mistake) {
		f := Fail(http.StatusBadRequest, "invalid_json", mistake.Error())
		f.Errors = []problem.FieldError{{Pointer: mistake.Pointer, Detail: mistake.Detail}}
		return f
	} else if err != nil {
		return err
	}
	return nil
}

// Write answers with v as JSON.
func Write(w http.ResponseWriter, status int, v any) error {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // a client that has gone is nobody to tell
	return nil
}

// PathID returns the ID of a path's part, any text of at most 128 bytes.
func PathID(req *http.Request, part string) (string, error) {
	id := req.PathValue(part)
	if len(id) > MaxID {
		f := Fail(http.StatusBadRequest, "invalid_id", "an ID has at most "+strconv.Itoa(MaxID)+" bytes")
		f.Errors = []problem.FieldError{{Pointer: part, Detail: "is too long"}}
		return "", f
	}
	return id, nil
}

// SameID checks the ID in a document, if there is one, against that of the path.
func SameID(pointer, inDocument, inPath string) []problem.FieldError {
	if inDocument == "" || inDocument == inPath {
		return nil
	}
	return []problem.FieldError{{Pointer: pointer, Detail: "differs from the one in the path"}}
}

// Required checks that a member has a value.
func Required(pointer, value string) []problem.FieldError {
	if value != "" {
		return nil
	}
	return []problem.FieldError{{Pointer: pointer, Detail: "is missing or empty"}}
}
