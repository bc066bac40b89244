package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// bookRecord is the book's view of a route record. Weight is the tenths of the
// calls that stay with the old version.
type bookRecord struct {
	ServiceName string `json:"serviceName"`
	Active      string `json:"active"`
	Endpoint    string `json:"endpoint"`
	Weight      int    `json:"weight"`
}

const (
	recordPath = "/v1/route/abtesting/organizationservice"
	bookWeight = 5
)

// ensureRecord writes the book's record, half of the calls to the endpoint, unless
// there is a record: it may be what the user left there the last time.
// specialRoutes is a base URL.
func ensureRecord(ctx context.Context, specialRoutes, endpoint string, out io.Writer) error {
	url := specialRoutes + recordPath
	status, body, err := send(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("reading the record: %w", err)
	}
	switch status {
	case http.StatusOK:
		fmt.Fprintf(out, "The record of the last time is in force: %s\n", bytes.TrimSpace(body))
		return nil
	case http.StatusConflict: // one that the book's view cannot show
		fmt.Fprintln(out, "The record of the last time is in force; see /v1/routes/organizationservice.")
		return nil
	case http.StatusNotFound:
	default:
		return fmt.Errorf("reading the record: status %d: %s", status, body)
	}
	text, err := json.Marshal(newRecord(endpoint, bookWeight))
	if err != nil {
		return err
	}
	status, body, err = send(ctx, http.MethodPut, url, text)
	if err != nil {
		return fmt.Errorf("writing the record: %w", err)
	}
	if status != http.StatusCreated && status != http.StatusOK {
		return fmt.Errorf("writing the record: status %d: %s", status, body)
	}
	fmt.Fprintf(out, "The book's record is written: %s\n", text)
	return nil
}

func newRecord(endpoint string, weight int) bookRecord {
	return bookRecord{ServiceName: "organizationservice", Active: "Y", Endpoint: endpoint, Weight: weight}
}

// send makes one request and returns the answer.
func send(ctx context.Context, method, url string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}
