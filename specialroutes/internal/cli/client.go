package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"specialroutes.example/services/clientauth"
)

// The bounds of one exchange, beside --timeout.
const (
	dialTimeout   = 5 * time.Second
	largestAnswer = 256 << 20 // a page of history holds two thousand records
)

// client asks a specialroutes.
type client struct {
	base  string // without a slash at its end
	token string // "" is none
	http  *http.Client
}

// call is one request.
type call struct {
	method, path string
	query        url.Values
	header       http.Header
	body         []byte // JSON; nil is none
}

// answer is an answer of success, read whole.
type answer struct {
	status int
	etag   string
	body   []byte
}

// newClient reads the files that the connection names.
func newClient(c *connection) (*client, error) {
	base, err := parseBase(c.server)
	if err != nil {
		return nil, usage(fmt.Errorf("--server: %w", err))
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		DisableKeepAlives:   true, // one request, seldom more
		DisableCompression:  true, // the bound is on what is read, not on what it unpacks to
	}
	if c.caFile != "" {
		pool, err := clientauth.Authorities(c.caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	token, err := clientauth.Token(c.tokenFile)
	if err != nil {
		return nil, fmt.Errorf("--token-file: %w", err)
	}
	return &client{base: base, token: token, http: &http.Client{
		Transport: transport,
		Timeout:   c.timeout,
		// A redirect would carry the token to wherever it points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// parseBase checks the address of a specialroutes. A path is one that a proxy in
// front puts before ours.
func parseBase(server string) (string, error) {
	u, err := url.Parse(server)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return "", errors.New("want a URL such as http://127.0.0.1:8910")
	case u.User != nil:
		return "", errors.New("want a URL without a user; a token goes into --token-file")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", errors.New("want a URL without a query and a fragment")
	}
	return strings.TrimRight(u.Scheme+"://"+u.Host+u.EscapedPath(), "/"), nil
}

// do makes a call. An answer of 4xx or 5xx is an *answerError; all errors have
// their exit code.
func (c *client) do(ctx context.Context, k call) (*answer, error) {
	target := c.base + k.path
	if len(k.query) > 0 {
		target += "?" + k.query.Encode()
	}
	var body io.Reader
	if k.body != nil {
		body = bytes.NewReader(k.body)
	}
	req, err := http.NewRequestWithContext(ctx, k.method, target, body)
	if err != nil {
		return nil, err
	}
	for name, lines := range k.header {
		req.Header[name] = lines
	}
	if k.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	req.Header.Set("User-Agent", "specialroutes-command-line")
	res, err := c.http.Do(req)
	if err != nil {
		return nil, transportError(k, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, largestAnswer+1))
	switch {
	case err != nil:
		return nil, transportError(k, err)
	case len(text) > largestAnswer:
		return nil, fmt.Errorf("%s %s: the answer is longer than %d bytes", k.method, k.path, largestAnswer)
	case res.StatusCode >= http.StatusBadRequest:
		return nil, newAnswerError(k, res, text)
	}
	return checkAnswer(k, res, text)
}

// checkAnswer refuses what specialroutes would not say, so that the page of a proxy
// in between is not taken for its answer.
func checkAnswer(k call, res *http.Response, text []byte) (*answer, error) {
	a := &answer{status: res.StatusCode, etag: res.Header.Get("ETag"), body: text}
	switch kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); {
	case res.StatusCode == http.StatusNoContent:
		return a, nil
	case res.StatusCode/100 == 2 && kind == "application/json":
		return a, nil
	default:
		return nil, unavailable(fmt.Errorf("%s %s: the answer is %s with %q\n  %s",
			k.method, k.path, res.Status, res.Header.Get("Content-Type"), notOurs))
	}
}

// transportError says that there was no answer, and for a write whether it may have
// been made all the same.
func transportError(k call, err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the rest is the URL, which the text below has
	}
	interrupted := errors.Is(err, context.Canceled)
	if interrupted {
		err = errors.New("interrupted")
	}
	var certificate *tls.CertificateVerificationError
	untrusted := errors.As(err, &certificate)
	var operation *net.OpError
	unsent := untrusted || errors.As(err, &operation) && operation.Op == "dial"
	err = fmt.Errorf("%s %s: %w", k.method, k.path, err)
	if k.method != http.MethodGet && !unsent {
		err = fmt.Errorf("%w; whether the change was made is not known: read the record", err)
	}
	if interrupted || untrusted { // asking again does not help, or is not wanted
		return err
	}
	return unavailable(err)
}

// isLoopback says whether what is sent to a base URL stays on this machine.
func isLoopback(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
