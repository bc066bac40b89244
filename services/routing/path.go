package routing

import "errors"

// Why CheckPath refuses a path. The text is a plain sentence for the client.
var (
	ErrTriplet   = errors.New("the path holds a percent sign that two hexadecimal digits do not follow")
	ErrByte      = errors.New("the path holds a byte outside visible ASCII")
	ErrFragment  = errors.New("the path holds a #; a fragment is not part of a request-target")
	ErrBackslash = errors.New(`the path holds a \, plain or as %5C`)
	ErrNUL       = errors.New("the path holds %00")
	ErrDots      = errors.New("the path holds the segment . or .. somewhere")
)

// CheckPath reports why the gateway refuses a raw path, nil when it does not. What two
// readers could take for two different paths is refused: bad triplets, bytes outside
// 0x21-0x7E, #, \ (also %5C), %00, and segments that are . or .., whether plain
// or as %2e, whether parameters follow a ; and whether the reader takes %2F for
// a separator. All else passes. Of a path below a route's prefix the same is true as
// of the whole.
func CheckPath(path string) error {
	var s segment
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch {
		case c == '/':
			if s.dots() {
				return ErrDots
			}
			s = segment{}
		case c == '%':
			if i+2 >= len(path) || unhex(path[i+1]) < 0 || unhex(path[i+2]) < 0 {
				return ErrTriplet
			}
			if err := s.triplet(byte(unhex(path[i+1])<<4 | unhex(path[i+2]))); err != nil {
				return err
			}
			i += 2
		case c == '#':
			return ErrFragment
		case c == '\\':
			return ErrBackslash
		case c < 0x21 || c > 0x7e:
			return ErrByte
		default:
			s.add(c)
		}
	}
	if s.dots() {
		return ErrDots
	}
	return nil
}

// segment is what CheckPath has seen of the segment that it is in.
type segment struct {
	count int  // dots so far
	other bool // something else than dots came, before any parameter
	param bool // a ; came: the rest are parameters
}

func (s *segment) add(c byte) {
	switch {
	case s.param:
	case c == ';':
		s.param = true
	case c == '.':
		s.count++
	default:
		s.other = true
	}
}

// triplet takes the byte that a percent triplet stands for.
func (s *segment) triplet(c byte) error {
	switch c {
	case 0:
		return ErrNUL
	case '\\':
		return ErrBackslash
	case '/':
		if s.dots() {
			return ErrDots
		}
		*s = segment{}
	case '.':
		s.add('.')
	default:
		s.add('x') // an encoded ; separates nothing
	}
	return nil
}

// dots reports whether the segment is . or .. when its parameters are left out.
func (s *segment) dots() bool { return !s.other && (s.count == 1 || s.count == 2) }

// unhex returns the value of a hexadecimal digit, -1 of anything else.
func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
