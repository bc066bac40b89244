//go:build linux

package forward

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"time"

	"specialroutes.example/gateway/internal/filter"
)

// readHead reads the head of the answer, and passes on those of 1xx answers before
// it.
func (c *carriage) readHead(patience time.Duration) error {
	l, since, seen := c.link, time.Now(), 0
	// Whoever else can run goes first. Meanwhile the answer may come, which saves a
	// read that finds nothing and all that belongs to being woken. While it waits for
	// its client's next request each goroutine is parked for good, so those that become
	// ready are not kept waiting by those that only step aside.
	runtime.Gosched()
	for {
		buffered := l.buffered()
		size := headEnd(buffered, seen)
		if size < 0 && len(buffered) > answerHeadMost || size > answerHeadMost {
			return errHeadTooLong
		}
		if size < 0 {
			seen = len(buffered)
			if err := c.await(since, patience, errResponseTimeout); err != nil {
				return ended(err)
			}
			continue
		}
		if err := c.head.parse(buffered[:size]); err != nil {
			return err
		}
		l.r += size
		switch {
		case c.head.status == http.StatusSwitchingProtocols:
			return fmt.Errorf("%w: a 101 that nobody has asked for", errBadAnswer)
		case !c.head.informational():
			return nil
		}
		if err := c.inform(); err != nil {
			return err
		}
		seen = 0
	}
}

// inform passes a 1xx answer on, without what is not the client's.
func (c *carriage) inform() error {
	if c.informed++; c.informed > informedMost {
		return errTooManyInformational
	}
	if c.head.status == http.StatusContinue {
		return nil // the client did not ask
	}
	filter.CleanInformational(c.ex, c.head.fields)
	c.out = appendStatusLine(c.out[:0], c.head.status)
	c.out = append(appendFields(c.out, c.head.fields), "\r\n"...)
	err := c.write(c.out)
	if err != nil {
		c.rep.begun = true // with a part of a head: nothing that follows could be read
	}
	return err
}

// bodyKind says where the body of an answer ends.
type bodyKind uint8

const (
	bodyNone bodyKind = iota
	bodyOfLength
	bodyOfChunks
	bodyToEnd // of the connection
)

func (c *carriage) bodyKind() bodyKind {
	h := &c.head
	switch {
	case c.ex.Request.Method == http.MethodHead, h.bodiless(), h.length == 0:
		return bodyNone
	case h.chunked:
		return bodyOfChunks
	case h.length > 0:
		return bodyOfLength
	}
	return bodyToEnd
}

// answer finishes the head of the upstream's answer and streams the answer to the
// client.
func (c *carriage) answer() error {
	kind := c.bodyKind()
	reusable := c.reusable(kind)
	trailers, err := c.announced(kind)
	if err != nil {
		return c.failed(fmt.Errorf("%w: %w", errBadAnswer, err))
	}
	idle := c.ex.Route.Timeouts.Idle
	if eventStream(c.head.fields) {
		idle = c.ex.Route.Timeouts.Tunnel
	}
	c.finishHead(kind, trailers)
	if err := c.stream(kind, idle); err != nil {
		return c.failed(c.judged(err))
	}
	c.rep.complete, c.rep.keep = true, !c.cl.lastRequest
	if reusable && len(c.link.buffered()) == 0 {
		c.link.pool.put(c.shelf, c.link, c.now)
		c.link = nil
	}
	return nil
}

// judged makes an unusable answer of what is neither a limit nor the client's
// leaving.
func (c *carriage) judged(err error) error {
	if isLimit(err) || errors.Is(err, errClientGone) {
		return err
	}
	return fmt.Errorf("%w: %w", errBadAnswer, ended(err))
}

// reusable reports whether the connection may take another request once the answer
// has been read to its end.
func (c *carriage) reusable(kind bodyKind) bool {
	h := &c.head
	return h.reusable() && !c.spoilt && !h.closes && kind != bodyToEnd && (!h.old || h.keeps)
}

// announced returns the trailer fields that the client is told of.
func (c *carriage) announced(kind bodyKind) ([]string, error) {
	if kind != bodyOfChunks || c.head.fields["Trailer"] == nil {
		return nil, nil
	}
	all, err := c.head.announced()
	kept := all[:0]
	for _, name := range all {
		if c.ex.AnswerTrailer(name) {
			kept = append(kept, name)
		}
	}
	return kept, err
}

// finishHead runs the post filters and puts the head of the answer where the body
// follows.
func (c *carriage) finishHead(kind bodyKind, trailers []string) {
	h := &c.head
	filter.RemoveHopByHop(h.fields)
	c.ex.Answer = h.fields
	c.chain.Answer(c.ex)
	if len(trailers) > 0 {
		h.fields["Trailer"] = []string{strings.Join(trailers, ", ")}
	}
	form := answerForm{status: h.status, last: c.cl.last(), date: c.dates.at(c.now)}
	switch {
	case kind == bodyOfChunks, kind == bodyToEnd:
		form.framing = framedByChunks
	case h.length >= 0 && h.status != http.StatusNoContent:
		form.framing, form.length = framedByLength, h.length
	}
	c.out = appendAnswerHead(c.out[:0], h.fields, form)
	c.rep.status = h.status
}
