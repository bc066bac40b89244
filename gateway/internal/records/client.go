package records

import (
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

	"github.com/go-json-experiment/json"

	"specialroutes.example/services/clientauth"
)

// The bounds of one exchange with specialroutes, beside those of Times.
const (
	dialTimeout = 2 * time.Second
	// largestProblem bounds what is read of an answer that is an error.
	largestProblem = 64 << 10

	// mostSetAside is how many records set aside specialroutes is told of, and how many
	// changes of labels; of the latter in so many bytes, for the question must stay one
	// that is answered.
	mostSetAside      = 50
	mostSetAsideBytes = 8 << 10
)

// client asks specialroutes for changes. It is safe for concurrent use.
type client struct {
	http      *http.Client
	gatewayID string
	version   string
	tokenFile string
	times     Times
	maxAnswer int64
}

// newClient reads the CA file and checks that there is a token where one is to be
// sent, so that a wrong setting shows at the start.
func newClient(o Options) (*client, error) {
	transport := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:   dialTimeout,
		IdleConnTimeout:       90 * time.Second,
		DisableCompression:    true, // the bound is on what is read, not on what it unpacks to
		MaxIdleConnsPerHost:   1,
		ResponseHeaderTimeout: 0, // ask bounds it, for it depends on the wait
	}
	if o.CAFile != "" {
		pool, err := clientauth.Authorities(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("records: CA file: %w", err)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	c := &client{
		http: &http.Client{
			Transport: transport,
			// A redirect would carry the token to wherever it points.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		gatewayID: o.GatewayID,
		version:   o.Version,
		tokenFile: o.TokenFile,
		times:     o.Times,
		maxAnswer: o.MaxAnswer,
	}
	_, err := c.token()
	return c, err
}

// token reads the token, anew for each request so that it can be replaced without
// a restart. It is "" where no file is set.
func (c *client) token() (string, error) {
	token, err := clientauth.Token(c.tokenFile)
	if err != nil {
		return "", fmt.Errorf("records: token file: %w", err)
	}
	return token, nil
}

// errTooSlow is the cause of an exchange that was given up.
var errTooSlow = errors.New("no complete answer in time")

// ask makes one blocking query for what came after the snapshot in force, and so
// tells what that is. It takes at most wait and Times.Slack until the head of the
// answer, and Times.Body from there to its end.
func (c *client) ask(ctx context.Context, base string, inForce *Snapshot, wait time.Duration) (*envelope, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := time.AfterFunc(wait+c.times.Slack, func() { cancel(errTooSlow) })
	defer limit.Stop()

	req, err := c.request(ctx, base, inForce, wait)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, explain(ctx, err)
	}
	defer res.Body.Close()
	limit.Reset(c.times.Body)
	if err := checkHead(res); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, c.maxAnswer+1))
	if err != nil {
		return nil, explain(ctx, err)
	}
	if int64(len(text)) > c.maxAnswer {
		return nil, fmt.Errorf("the answer is longer than %d bytes", c.maxAnswer)
	}
	e, err := decodeEnvelope(text)
	if err != nil {
		return nil, err
	}
	e.fileOnly = fileOnly{} // means nothing in an answer
	return e, nil
}

// leave makes the last question, which says that the gateway ends. Of the answer only
// its status counts.
func (c *client) leave(ctx context.Context, base string, inForce *Snapshot) error {
	req, err := c.request(ctx, base, inForce, 0)
	if err != nil {
		return err
	}
	req.URL.RawQuery += "&leaving=true"
	res, err := c.http.Do(req)
	if err != nil {
		return explain(ctx, err)
	}
	defer res.Body.Close()
	return checkHead(res)
}

func (c *client) request(ctx context.Context, base string, inForce *Snapshot, wait time.Duration) (*http.Request, error) {
	query := url.Values{"gateway": {c.gatewayID}}
	if c.version != "" {
		query.Set("version", c.version)
	}
	names := append(inForce.setAsideServices(mostSetAside), inForce.setAsideInstances(mostSetAside, mostSetAsideBytes)...)
	if len(names) > 0 {
		query.Set("setAside", strings.Join(names, ","))
	}
	if cursor := inForce.Cursor(); cursor != "" {
		query.Set("after", cursor)
	}
	if wait > 0 {
		query.Set("wait", fmt.Sprintf("%dms", wait.Milliseconds()))
	}
	target := strings.TrimSuffix(base, "/") + "/v1/changes?" + query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, fmt.Errorf("records: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "specialroutes-gateway/"+c.version)
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

// explain puts the cause in the place of "context canceled".
func explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// checkHead refuses an answer that cannot hold an envelope.
func checkHead(res *http.Response) error {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode != http.StatusOK {
		return &StatusError{Status: res.StatusCode, Code: problemCode(kind, res.Body)}
	}
	if kind != "application/json" {
		return fmt.Errorf("the answer is %q and not application/json", kind)
	}
	return nil
}

// StatusError is an answer of specialroutes, or of something in its place, that
// is not 200.
type StatusError struct {
	Status int
	Code   string // of its problem document; "" when it has none
}

// Error names the status and the code.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("the answer is %d %s", e.Status, http.StatusText(e.Status))
	if e.Code != "" {
		text += " (" + e.Code + ")"
	}
	return text
}

// problemCode returns the code of a problem document, "" when body is none.
func problemCode(kind string, body io.Reader) string {
	if kind != "application/problem+json" {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(body, largestProblem))
	if err != nil {
		return ""
	}
	var p struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(text, &p) != nil || len(p.Code) > 64 {
		return ""
	}
	return p.Code
}
