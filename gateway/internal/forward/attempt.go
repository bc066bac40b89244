package forward

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/filter"
)

// RoundTrip sends the request until an answer comes or no attempt is left.
func (c *call) RoundTrip(out *http.Request) (*http.Response, error) {
	for {
		at := &attempt{call: c}
		if overH2(&c.ex.Pick.Target) {
			at.h2 = &h2Attempt{key: h2Key{c.ex.Pick.Scheme, c.ex.Pick.Address}}
		}
		res, err := at.send(out)
		if err == nil {
			return res, nil
		}
		if err = c.next(at, err); err != nil {
			return nil, err
		}
		c.ex.Entry.Retries++
		c.watch.again()
	}
}

// next prepares another attempt after one that failed, or returns why there is
// none.
func (c *call) next(at *attempt, err error) error {
	switch {
	case c.ctx.Err() != nil:
		c.tries.overLimit(c.cause())
		if at.h2 != nil && at.h2.conn != nil && errors.Is(c.cause(), errResponseTimeout) {
			c.proxy.h2.discard(at.h2.key, at.h2.conn)
		}
		return c.cause()
	case errors.Is(err, errScarce):
		return err
	case errors.Is(err, errConnect):
		return c.tries.nextTarget(err)
	case at.h2 != nil:
		return c.nextH2(at, err)
	case at.conn == nil: // the transport refused it before it asked for a connection
		return fmt.Errorf("%w: %w", errUnsendable, err)
	case !at.sent() && !c.bodyTouched():
		return c.tries.stillborn(err)
	case !at.answered() && c.tries.resend(c.body != nil):
		return nil
	}
	return fmt.Errorf("%w: %w", errBadAnswer, err)
}

// bodyTouched reports whether some of the body is gone, so that no other attempt
// can have it.
func (c *call) bodyTouched() bool {
	if c.feed != nil {
		return !c.feed.whole()
	}
	return c.body != nil && c.body.touched.Load()
}

// attempt is one try of a request at one target.
type attempt struct {
	*call
	h2      *h2Attempt // nil: over HTTP/1
	insert  string     // what the connection puts into the request-target
	over    atomic.Bool
	conn    *upstreamConn
	base    int64 // bytes read from conn before
	expects *expectation
}

// send makes the attempt.
func (at *attempt) send(out *http.Request) (*http.Response, error) {
	began := time.Now()
	res, err := at.roundTrip(at.request(out))
	at.ex.Entry.Upstream += time.Since(began)
	if at.h2 != nil {
		at.h2.relay.wait()
	}
	at.over.Store(true)
	if at.expects != nil {
		close(at.expects.over)
	}
	at.informational.Lock() // one that is being written ends first
	at.headCame = err == nil
	at.informational.Unlock()
	if err != nil {
		return nil, err
	}
	at.ex.Pick.Answered()
	if at.expects != nil {
		mend(res, at.expects.facts.Load())
	}
	return res, nil
}

// request builds the attempt's request out of the one that all attempts share.
func (at *attempt) request(out *http.Request) *http.Request {
	trace := &httptrace.ClientTrace{
		GotConn:        at.gotConn,
		WroteHeaders:   at.wroteHead,
		WroteRequest:   at.wroteRequest,
		Got1xxResponse: at.got1xx,
	}
	// Not out's context: it carries ReverseProxy's own trace, which passes 1xx
	// answers on as they are.
	req := out.WithContext(httptrace.WithClientTrace(at.ctx, trace))
	target := &at.ex.Pick.Target
	req.URL, at.insert = requestURL(target, at.ex)
	req.Host = target.Authority
	if at.ex.Route.PreserveHost {
		req.Host = at.ex.Request.Host
	}
	if at.ex.Entry.Retries > 0 {
		// An earlier attempt may still be reading the header that it was given.
		req.Header = req.Header.Clone()
	}
	at.ex.Use(at.ex.Pick, req.Header)
	at.setBody(req)
	if at.h2 != nil {
		at.fitH2(req)
	}
	return req
}

// setBody frames the request as it came: with its length, or chunked where that
// is not known.
func (at *attempt) setBody(req *http.Request) {
	in := at.ex.Request
	switch {
	case at.body != nil:
		req.Body, req.ContentLength = at.newBody(), in.ContentLength
		if in.ContentLength < 0 {
			// Or the transport waits for a first byte to see whether there is a body.
			req.TransferEncoding = []string{"chunked"}
		}
	case replayedByTransport(req.Method):
		req.Body, req.ContentLength = noBody{}, 0
		req.TransferEncoding = []string{"identity"} // or the transport would look for a body
	case len(in.Header["Content-Length"]) > 0:
		req.Body, req.ContentLength = http.NoBody, 0
		req.TransferEncoding = []string{"identity"} // sends Content-Length: 0
	default:
		req.Body, req.ContentLength = nil, 0
	}
}

// newBody returns the body as this attempt reads it.
func (at *attempt) newBody() io.ReadCloser {
	if at.feed != nil {
		return at.feed.reader()
	}
	return &attemptBody{body: at.body}
}

// replayedByTransport reports whether http.Transport sends a request again by
// itself when it has no body.
func replayedByTransport(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// requestURL returns what the upstream is asked for: the target's base, the raw
// path and the raw query, all byte for byte. Opaque is the only form that net/url
// never touches; but it takes two slashes at its start for an authority, so all
// but one are left to the connection.
func requestURL(t *balance.Target, ex *filter.Exchange) (u *url.URL, insert string) {
	path := t.Base + ex.Path()
	rest := strings.TrimLeft(path, "/")
	slashes := len(path) - len(rest)
	return &url.URL{
		Scheme:     t.Scheme,
		Host:       t.Address,
		Opaque:     path[slashes-1:],
		RawQuery:   ex.Target.Query,
		ForceQuery: ex.Target.HasQuery && ex.Target.Query == "",
	}, path[:slashes-1]
}

func (at *attempt) gotConn(info httptrace.GotConnInfo) {
	conn, ok := info.Conn.(*upstreamConn)
	if !ok {
		return
	}
	at.ex.Pick.Connected()
	at.conn, at.base = conn, conn.read.Load()
	at.expects = conn.expect(at.ex.Request.Method == http.MethodHead, info.Reused, at.insert)
}

// sent reports whether a byte of the request was written.
func (at *attempt) sent() bool {
	return at.conn != nil && at.conn.written.Load() > at.expects.base
}

// answered reports whether a byte of an answer was read.
func (at *attempt) answered() bool { return at.conn != nil && at.conn.read.Load() > at.base }

func (at *attempt) wroteHead() {
	if at.h2 != nil {
		at.h2.written.Store(true)
	}
}

func (at *attempt) wroteRequest(info httptrace.WroteRequestInfo) {
	if info.Err == nil && !at.over.Load() {
		at.watch.enter(waiting)
	}
}

// informedMost is how many 1xx answers are passed on before one counts as no
// answer at all.
const informedMost = 64

var errTooManyInformational = errors.New("more 1xx answers than are passed on")

// got1xx passes a 1xx answer on.
func (at *attempt) got1xx(code int, header textproto.MIMEHeader) error {
	if at.h2 != nil {
		at.h2.heard.Store(true)
		if at.h2.informed++; at.h2.informed > informedMost {
			return errTooManyInformational
		}
		if code == http.StatusContinue {
			return nil // the body is read now, and the server says this by itself then
		}
		// It is told by who reads the connection for all its requests, and must not wait
		// for one client.
		at.h2.relay.do(func() { _ = at.inform(code, header) })
		return nil
	}
	return at.inform(code, header)
}

// inform writes a 1xx answer, without what is not the client's.
func (at *attempt) inform(code int, header textproto.MIMEHeader) error {
	at.informational.Lock()
	defer at.informational.Unlock()
	if at.over.Load() || at.headCame {
		return nil
	}
	if at.informed++; at.informed > informedMost {
		return errTooManyInformational
	}
	r := at.ex.Request
	if !r.ProtoAtLeast(1, 1) || code == http.StatusContinue && len(r.Header["Expect"]) == 0 {
		return nil // a client that cannot read it, or did not ask
	}
	h := at.answer.Header()
	clear(h)
	for name, lines := range header {
		h[name] = lines
	}
	filter.CleanInformational(at.ex, h)
	at.watch.inform(func() { at.answer.WriteHeader(code) })
	at.answer.forget()
	return nil
}
