package forward

import (
	"errors"
	"net/http"
	"strconv"
)

var errChunk = errors.New("the answer is not chunked as HTTP asks for")

// Limits of what surrounds a chunked body's data, as net/http has them.
const (
	chunkLineMost   = 4096     // of a chunk's first line
	chunkExcessMost = 16 << 10 // of lines that are long for the data that they bring
	chunkDigitsMost = 15       // of a size: it fits 63 bits
	trailerMost     = 64 << 10
)

// chunkState is what comes next in a chunked body.
type chunkState uint8

const (
	chunkSize      chunkState = iota // digits of a size
	chunkBlank                       // white space behind them
	chunkExtension                   // what follows a semicolon
	chunkSizeLF                      // the LF of a chunk's first line
	chunkData
	chunkDataCR
	chunkDataLF
	chunkTrailer // field lines and a blank line
	chunkEnd
)

// chunks reads a chunked body in whatever pieces it comes. Extensions are dropped.
// Lines end with CRLF and nothing else.
type chunks struct {
	state   chunkState
	left    int64  // of the chunk's data
	digits  int    // of the size so far
	line    int    // bytes of the chunk's first line so far
	excess  int64  // bytes of first lines beyond what is usual
	trailer []byte // the field lines behind the last chunk, raw
}

func (c *chunks) reset() { *c = chunks{trailer: c.trailer[:0]} }

// done reports whether the body's end has been read.
func (c *chunks) done() bool { return c.state == chunkEnd }

// next takes the next bytes: it returns how many of p it has used up, and the data
// among them, if there is any. It returns after each piece of data, and at the
// body's end.
func (c *chunks) next(p []byte) (data []byte, used int, err error) {
	for used < len(p) {
		switch c.state {
		case chunkData:
			n := min(c.left, int64(len(p)-used))
			data = p[used : used+int(n)]
			if c.left -= n; c.left == 0 {
				c.state = chunkDataCR
			}
			return data, used + int(n), nil
		case chunkTrailer:
			n, err := c.readTrailer(p[used:])
			return nil, used + n, err
		case chunkEnd:
			return nil, used, nil
		}
		if err := c.step(p[used]); err != nil {
			return nil, used, err
		}
		used++
	}
	return nil, used, nil
}

// begins fails where p, the first bytes of a body, shows before any data that it is
// not chunked.
func (c *chunks) begins(p []byte) error {
	_, _, err := c.next(p)
	if err == nil && c.done() {
		trailer := answerHead{fields: make(http.Header)}
		err = trailer.fieldLines(string(c.trailer))
	}
	return err
}

// follow takes the next bytes and returns how many of them belong to the body, without
// regard to its data.
func (c *chunks) follow(p []byte) (n int, err error) {
	for n < len(p) && !c.done() {
		_, used, err := c.next(p[n:])
		n += used
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// step takes one byte of what is between the data.
func (c *chunks) step(b byte) error {
	switch c.state {
	case chunkSize, chunkBlank, chunkExtension:
		if c.line++; c.line > chunkLineMost {
			return errChunk
		}
		return c.stepLine(b)
	case chunkSizeLF:
		if b != '\n' {
			return errChunk
		}
		return c.lineOver()
	case chunkDataCR:
		if b != '\r' {
			return errChunk
		}
		c.state = chunkDataLF
	case chunkDataLF:
		if b != '\n' {
			return errChunk
		}
		c.state, c.left, c.digits, c.line = chunkSize, 0, 0, 0
	}
	return nil
}

// stepLine takes one byte of a chunk's first line.
func (c *chunks) stepLine(b byte) error {
	if b == '\r' && c.digits > 0 {
		c.state = chunkSizeLF
		return nil
	}
	if c.state == chunkExtension {
		if b < ' ' && b != '\t' || b == 0x7f {
			return errChunk
		}
		return nil
	}
	switch digit := hexDigit(b); {
	case digit >= 0 && c.state == chunkSize && c.digits < chunkDigitsMost:
		c.digits++
		c.left = c.left<<4 | int64(digit)
	case (b == ' ' || b == '\t') && c.digits > 0:
		c.state = chunkBlank
	case b == ';' && c.digits > 0:
		c.state = chunkExtension
	default:
		return errChunk
	}
	return nil
}

// lineOver is called at the end of a chunk's first line.
func (c *chunks) lineOver() error {
	c.excess = max(0, c.excess+int64(c.line)+2-16-2*min(c.left, 1<<30))
	if c.excess > chunkExcessMost {
		return errChunk
	}
	c.state = chunkData
	if c.left == 0 {
		c.state = chunkTrailer
	}
	return nil
}

// readTrailer takes bytes of the trailer section, up to the end of the body.
func (c *chunks) readTrailer(p []byte) (used int, err error) {
	for i, b := range p {
		c.trailer = append(c.trailer, b)
		if b == '\n' && endsTrailer(c.trailer) {
			c.state = chunkEnd
			return i + 1, nil
		}
		if len(c.trailer) > trailerMost {
			return i, errChunk
		}
	}
	return len(p), nil
}

// endsTrailer reports whether t, which ends with LF, ends with a blank line.
func endsTrailer(t []byte) bool {
	t = t[:len(t)-1]
	if n := len(t); n > 0 && t[n-1] == '\r' {
		t = t[:n-1]
	}
	return len(t) == 0 || t[len(t)-1] == '\n'
}

func hexDigit(b byte) int {
	switch {
	case '0' <= b && b <= '9':
		return int(b - '0')
	case 'a' <= b && b <= 'f':
		return int(b-'a') + 10
	case 'A' <= b && b <= 'F':
		return int(b-'A') + 10
	}
	return -1
}

// appendChunk appends data as one chunk. Data of no length would be the end: it
// appends nothing.
func appendChunk(dst, data []byte) []byte {
	if len(data) == 0 {
		return dst
	}
	dst = strconv.AppendUint(dst, uint64(len(data)), 16)
	dst = append(append(dst, "\r\n"...), data...)
	return append(dst, "\r\n"...)
}
