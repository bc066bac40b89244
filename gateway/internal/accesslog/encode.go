package accesslog

import (
	"net/netip"
	"strconv"
	"time"
	"unicode/utf8"
)

// The longest text of a member, in bytes of its source; what is over is cut, and
// the text ends with an ellipsis.
const (
	longestPath = 2048
	longestText = 256
)

// ellipsis stands for what was cut.
const ellipsis = "…"

// appendEntry appends e as one line of JSON with its line feed. All members but
// correlationReplaced, code and overrideInvalid are always there. The order never
// changes. Durations are seconds. It is written by hand because it runs once per
// request: it allocates nothing.
func appendEntry(b []byte, e *Entry) []byte {
	b = append(b, `{"time":"`...)
	b = appendTime(b, e.Time)
	b = append(b, '"')
	b = appendText(b, `,"correlationId":`, e.CorrelationID, longestText)
	if e.CorrelationReplaced {
		b = append(b, `,"correlationReplaced":true`...)
	}
	b = appendText(b, `,"method":`, e.Method, longestText)
	b = appendText(b, `,"host":`, e.Host, longestText)
	b = appendText(b, `,"path":`, e.Path, longestPath)
	b = appendText(b, `,"route":`, e.Route, longestText)
	b = appendText(b, `,"service":`, e.Service, longestText)
	b = appendText(b, `,"variant":`, e.Variant, longestText)
	b = appendText(b, `,"reason":`, e.Reason, longestText)
	b = appendText(b, `,"fallback":`, e.Fallback, longestText)
	b = appendText(b, `,"instance":`, e.Instance, longestText)
	b = appendNumber(b, `,"status":`, int64(e.Status))
	b = appendNumber(b, `,"bytesIn":`, e.BytesIn)
	b = appendNumber(b, `,"bytesOut":`, e.BytesOut)
	b = appendSeconds(b, `,"duration":`, e.Duration)
	b = appendSeconds(b, `,"upstream":`, e.Upstream)
	b = appendNumber(b, `,"retries":`, int64(e.Retries))
	b = appendAddress(b, `,"client":`, e.Client)
	if e.Code != "" {
		b = appendText(b, `,"code":`, e.Code, longestText)
	}
	if e.OverrideInvalid != "" {
		b = appendText(b, `,"overrideInvalid":`, e.OverrideInvalid, longestText)
	}
	return append(b, "}\n"...)
}

// appendTime appends t in UTC as RFC 3339 has it, with six digits of the second, so
// that lines can be sorted as text. Years have four digits.
func appendTime(b []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	b = append(appendDigits(b, year, 1000), '-')
	b = append(appendDigits(b, int(month), 10), '-')
	b = append(appendDigits(b, day, 10), 'T')
	b = append(appendDigits(b, hour, 10), ':')
	b = append(appendDigits(b, minute, 10), ':')
	b = append(appendDigits(b, second, 10), '.')
	return append(appendDigits(b, t.Nanosecond()/1000, 1e5), 'Z')
}

// appendDigits appends n with as many digits as unit has.
func appendDigits(b []byte, n, unit int) []byte {
	for ; unit > 0; unit /= 10 {
		b = append(b, '0'+byte(n/unit%10))
	}
	return b
}

func appendNumber(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(b, name...), n, 10)
}

// appendSeconds appends d in seconds with six digits. A clock that went backwards
// is zero.
func appendSeconds(b []byte, name string, d time.Duration) []byte {
	micros := int(max(d, 0).Microseconds())
	b = strconv.AppendInt(append(b, name...), int64(micros/1e6), 10)
	return appendDigits(append(b, '.'), micros%1e6, 1e5)
}

func appendAddress(b []byte, name string, a netip.Addr) []byte {
	b = append(append(b, name...), '"')
	if a.IsValid() {
		b = a.WithZone("").AppendTo(b) // a zone is text from the system, and no part of who it is
	}
	return append(b, '"')
}

// appendText appends s as a JSON string, cut at longest bytes.
func appendText(b []byte, name, s string, longest int) []byte {
	b = append(append(b, name...), '"')
	cut := len(s) > longest
	if cut {
		s = s[:longest]
		for i := 0; i < utf8.UTFMax && len(s) > 0; i++ { // not in the middle of a character
			if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size != 1 {
				break
			}
			s = s[:len(s)-1]
		}
	}
	start := 0
	for i := plainPrefix(s); i < len(s); {
		if c := s[i]; c < utf8.RuneSelf && plain[c] {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r >= 0xa0 && r != 0x2028 && r != 0x2029 && (r != utf8.RuneError || size > 1) {
			i += size
			continue
		}
		b = append(b, s[start:i]...)
		b = appendEscaped(b, r)
		i += size
		start = i
	}
	b = append(b, s[start:]...)
	if cut {
		b = append(b, ellipsis...)
	}
	return append(b, '"')
}

// plainPrefix returns how many bytes at the beginning of s surely stand for
// themselves. It looks at eight at a time, for nearly all texts are plain to their
// end.
func plainPrefix(s string) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		x := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		below := (x - ' '*each) &^ x // a high bit for a byte below the space, and it may be for those after it
		if (x|below|zeros(x^0x7f*each)|zeros(x^'"'*each)|zeros(x^'\\'*each))&highs != 0 {
			return i
		}
	}
	return i
}

const (
	each  = 0x0101010101010101 // times a byte: that byte eight times
	highs = 0x80 * each
)

// zeros sets the high bit of a byte if it, or one below it, is zero, and not only that.
func zeros(x uint64) uint64 { return (x - each) &^ x }

// plain marks the ASCII characters that stand for themselves.
var plain = func() (p [utf8.RuneSelf]bool) {
	for c := range p {
		p[c] = c >= 0x20 && c < 0x7f && c != '"' && c != '\\'
	}
	return p
}()

// appendEscaped appends r, which is below 0x10000, so that neither JSON nor a
// terminal takes it for anything but text.
func appendEscaped(b []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	if r == '"' || r == '\\' {
		return append(b, '\\', byte(r))
	}
	return append(b, '\\', 'u', hex[r>>12&0xf], hex[r>>8&0xf], hex[r>>4&0xf], hex[r&0xf])
}
