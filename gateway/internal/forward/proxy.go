package forward

import (
	"context"
	"log"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"sync"

	"specialroutes.example/gateway/internal/filter"
)

// proxy carries exchanges over net/http: the transport's pool on one side, the
// server's connection on the other, httputil.ReverseProxy between them.
type proxy struct {
	transport *http.Transport
	h2        *h2Pool
	chain     *filter.Chain
	budget    *budget // shared with the other engine
	bodyMost  int64
	buffers   bufferPool
	errors    *log.Logger
}

var _ carrier = (*proxy)(nil)

func newProxy(o Options, b *budget) *proxy {
	p := &proxy{
		chain:    o.Chain,
		budget:   b,
		bodyMost: int64(o.Limits.BodyBytes),
		// What ReverseProxy has to say we say better in the access log.
		errors: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	d := newDialer(o.Upstream, newTrust(o), &p.buffers)
	p.transport, p.h2 = newTransport(o.Upstream, d), newH2Pool(o.Upstream, d)
	return p
}

func (p *proxy) close() {
	p.transport.CloseIdleConnections()
	p.h2.close()
}

// carry forwards the exchange. The call is over when it returns: no goroutine of
// it reads the request or writes the answer any more.
func (p *proxy) carry(a *answer, ex *filter.Exchange, before retries) error {
	p.budget.active.Add(1)
	defer p.budget.active.Add(-1)

	c := &call{proxy: p, ex: ex, answer: a, tries: before}
	c.tries.ex, c.tries.budget = ex, p.budget
	ctx, cancel := context.WithCancelCause(context.WithValue(
		ex.Request.Context(), connectLimit{}, ex.Route.Timeouts.Connect))
	defer cancel(nil)
	c.ctx, c.cancel = ctx, cancel
	in := ex.Request.WithContext(ctx)
	c.takeBody(in)
	c.begin()
	defer c.end()
	reverse := httputil.ReverseProxy{
		Rewrite:        c.rewrite,
		Transport:      c,
		ModifyResponse: c.modify,
		ErrorHandler:   c.fail,
		FlushInterval:  -1,
		BufferPool:     &p.buffers,
		ErrorLog:       p.errors,
	}
	if c.bodyFirst() == nil && c.serve(&reverse, in) {
		a.end()
		return nil
	}
	return c.outcome()
}

// bufferPool keeps the buffers that bodies are copied with.
type bufferPool struct{ pool sync.Pool }

const copyBuffer = 32 << 10

func (b *bufferPool) Get() []byte {
	if p, ok := b.pool.Get().(*[copyBuffer]byte); ok {
		return p[:]
	}
	return new([copyBuffer]byte)[:]
}

func (b *bufferPool) Put(p []byte) { b.pool.Put((*[copyBuffer]byte)(p)) }
