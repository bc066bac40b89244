package licensing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"specialroutes.example/services/internal/demo"
	"specialroutes.example/services/lane"
	"specialroutes.example/services/organization"
)

// ErrNoOrganization says that there is no organization of the ID asked for.
var ErrNoOrganization = errors.New("there is no such organization")

// UnavailableError says that nobody could tell about an organization.
type UnavailableError struct {
	Timeout bool // no answer came in time
	Err     error
}

func (e *UnavailableError) Error() string {
	return "the organization service cannot be asked: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// maxOrganization bounds the answer of the organization service, in bytes.
const maxOrganization = 64 << 10

// Client asks the organization service by HTTP. It is safe for concurrent use.
type Client struct {
	base    string
	timeout time.Duration
	http    *http.Client
}

var _ Organizations = (*Client)(nil)

// NewClient returns a client for the service below the base URL. One call takes at
// most the timeout, which belongs below that of whoever waits for the licensing
// service, so that its own answer still arrives. What the context's lane carries
// goes along; redirects are not followed.
func NewClient(base string, timeout time.Duration) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("%q is not a base URL, as http://localhost:5555/api/organization", base)
	}
	transport := &http.Transport{
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     30 * time.Second, // below the gateway's 75 s
	}
	return &Client{base: strings.TrimRight(base, "/"), timeout: timeout, http: &http.Client{
		Transport:     &lane.Transport{Base: transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Organization returns the organization of an ID, or ErrNoOrganization, or an
// *UnavailableError.
func (c *Client) Organization(ctx context.Context, id string) (organization.Organization, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	o, err := c.ask(ctx, c.base+"/v1/organizations/"+url.PathEscape(id))
	if err == nil || errors.Is(err, ErrNoOrganization) {
		return o, err
	}
	return organization.Organization{}, &UnavailableError{Timeout: errors.Is(err, context.DeadlineExceeded), Err: err}
}

func (c *Client) ask(ctx context.Context, address string) (organization.Organization, error) {
	var o organization.Organization
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return o, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return o, err
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotFound && problemCode(res) == "organization_not_found":
		return o, ErrNoOrganization
	case res.StatusCode == http.StatusGatewayTimeout:
		return o, fmt.Errorf("it was asked and answers %s: %w", res.Status, context.DeadlineExceeded)
	case res.StatusCode != http.StatusOK:
		return o, fmt.Errorf("it was asked and answers %s", res.Status)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxOrganization)).Decode(&o); err != nil {
		return o, fmt.Errorf("reading its answer: %w", err)
	}
	return o, nil
}

// problemCode returns the code of a problem document. A 404 may be the gateway's,
// which says nothing about the organization.
func problemCode(res *http.Response) string {
	var p struct{ Code string }
	if err := json.NewDecoder(io.LimitReader(res.Body, maxOrganization)).Decode(&p); err != nil {
		return ""
	}
	return p.Code
}

// organizationFailure is what the client is told when an organization cannot be had.
func organizationFailure(err error) error {
	var unavailable *UnavailableError
	switch {
	case errors.Is(err, ErrNoOrganization):
		return demo.Fail(http.StatusNotFound, "organization_not_found", "there is no organization of this ID")
	case errors.As(err, &unavailable) && unavailable.Timeout:
		f := demo.Fail(http.StatusGatewayTimeout, "organization_timeout", "the organization service did not answer in time")
		f.Cause = err
		return f
	default:
		f := demo.Fail(http.StatusBadGateway, "organization_unavailable", "the organization service cannot be asked")
		f.Cause = err
		return f
	}
}
