package storm_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"
)

// slowReaders ask for a long answer each, half of them for a chunked one, and take it
// bit by bit. Then some go away, some take the rest as fast as it comes and
// compare all of it, and most take a last bit and go too.
func slowReaders(ctx context.Context, g *gateway, n int, hold time.Duration) error {
	return each(n, func(i int) error {
		c, err := g.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		target := "/long"
		if i%2 == 1 {
			target += "?chunked"
		}
		if err := c.head("GET", target); err != nil {
			return err
		}
		res, err := c.answer("GET", 200)
		if err != nil {
			return err
		}
		hash := sha256.New()
		body := io.TeeReader(res.Body, hash)
		err = paced(ctx, hold, func() error {
			_, err := io.CopyN(io.Discard, body, int64(slowly(answerSize, hold)))
			return err
		})
		const reads = 10 // one of so many reads it all
		if err != nil || i%reads >= 2 {
			return err
		}
		if _, err := io.Copy(io.Discard, body); err != nil {
			return fmt.Errorf("the rest of the answer: %w", err)
		}
		if got := hex.EncodeToString(hash.Sum(nil)); got != shared.backend.sum {
			return fmt.Errorf("an answer with the sum %s, want %s", got, shared.backend.sum)
		}
		return nil
	})
}

// slowWriters send a body each bit by bit: a short one of known length, a long one,
// or a chunked one. Then some go away, and the others send the rest and compare
// what the backend says of it.
func slowWriters(ctx context.Context, g *gateway, n int, hold time.Duration) error {
	return each(n, func(i int) error {
		c, err := g.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		chunked, size := i%3 == 2, 512<<10
		if i%3 == 0 {
			size = 48 << 10
		}
		body := shared.backend.answer[i : i+size]
		send := func(piece []byte) error { _, err := c.Write(piece); return err }
		field := fmt.Sprintf("Content-Length: %d", size)
		if chunked {
			field = "Transfer-Encoding: chunked"
			send = func(piece []byte) error { _, err := fmt.Fprintf(c, "%x\r\n%s\r\n", len(piece), piece); return err }
		}
		if err := c.head("POST", "/take", field); err != nil {
			return err
		}
		rest, piece := body, slowly(size, hold)
		err = paced(ctx, hold, func() error {
			defer func() { rest = rest[piece:] }()
			return send(rest[:piece])
		})
		if err != nil {
			return fmt.Errorf("after %d of %d bytes: %w", size-len(rest), size, errors.Join(err, c.refusal()))
		}
		if leaves(i) {
			return nil
		}
		if err := send(rest); err != nil {
			return err
		}
		if chunked {
			if _, err := io.WriteString(c, "0\r\n\r\n"); err != nil {
				return err
			}
		}
		return c.wantBody("POST", sum(body))
	})
}

// refusal is what the gateway has answered before it ended the connection.
func (c *conn) refusal() error {
	_, err := c.answer("POST", 0)
	return err
}

// wantBody reads an answer and compares its body.
func (c *conn) wantBody(method, want string) error {
	res, err := c.answer(method, 200)
	if err != nil {
		return err
	}
	got, err := io.ReadAll(res.Body)
	if err == nil && string(got) != want {
		err = fmt.Errorf("an answer of %.100q, want %q", got, want)
	}
	return err
}

// declared is what a huge upload announces.
const declared = 1 << 30

// hugeUploads send as fast as the gateway takes it, to an upstream that reads 1 MB a
// second, and go away in the middle.
func hugeUploads(ctx context.Context, g *gateway, n int, hold time.Duration) error {
	shared.backend.harmed.Store(0)
	shared.backend.taken.Store(0)
	err := each(n, func(int) error {
		c, err := g.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.head("POST", "/huge", fmt.Sprintf("Content-Length: %d", declared)); err != nil {
			return err
		}
		if err := c.SetWriteDeadline(time.Now().Add(hold)); err != nil {
			return err
		}
		for sent := 0; sent < declared; {
			piece := shared.backend.answer[sent%answerSize:]
			piece = piece[:min(len(piece), declared-sent)]
			n, err := c.Write(piece)
			sent += n
			if isTimeout(err) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("after %d bytes: %w", sent, err)
			}
		}
		return errors.New("all of it was taken")
	})
	if harmed := shared.backend.harmed.Load(); harmed > 0 {
		err = errors.Join(err, fmt.Errorf("%d pieces arrived that were not sent so", harmed))
	}
	// Half of what the upstream would take: the machine may be busy.
	if taken, least := shared.backend.taken.Load(), int64(hold.Seconds())*int64(n)*1_000_000/2; taken < least {
		err = errors.Join(err, fmt.Errorf("the upstream got %d bytes of the uploads, want at least %d", taken, least))
	}
	return err
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// slowHeads send a request's head field by field and never end it. The gateway ends
// them, and answers others meanwhile.
func slowHeads(ctx context.Context, g *gateway, n int, hold time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	others := make(chan error, 1)
	go func() { // ends with ctx
		others <- paced(ctx, time.Hour, func() error {
			_, err := ask(ctx, "GET", g.url+path+"/", "")
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		})
	}()
	err := each(n, func(int) error {
		c, err := g.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := fmt.Fprintf(c, "GET %s/ HTTP/1.1\r\nHost: storm\r\n", path); err != nil {
			return err
		}
		err = paced(ctx, hold+time.Minute, func() error {
			_, err := io.WriteString(c, "X-More: of it\r\n")
			return err
		})
		if err == nil {
			return errors.New("a head was sent for a minute, and the connection is still open")
		}
		return ctx.Err() // the gateway has ended it, as it should
	})
	cancel()
	if other := <-others; other != nil && !errors.Is(other, context.Canceled) {
		err = errors.Join(err, fmt.Errorf("another client meanwhile: %w", other))
	}
	return err
}
