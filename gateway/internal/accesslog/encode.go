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

// timeFormat has a fixed width, so that lines can be sorted as text.
const timeFormat = "2006-01-02T15:04:05.000000Z"

// appendEntry appends e as one line of JSON with its line feed. All members but
// correlationReplaced, code and overrideInvalid are always there. The order never
// changes. Durations are seconds. It is written by hand because it runs once per
// request: it allocates nothing.
func appendEntry(b []byte, e *Entry) []byte {
	b = append(b, `{"time":"`...)
	b = e.Time.UTC().AppendFormat(b, timeFormat)
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

func appendNumber(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(b, name...), n, 10)
}

// appendSeconds appends d in seconds with six digits. A clock that went backwards
// is zero.
func appendSeconds(b []byte, name string, d time.Duration) []byte {
	micros := max(d, 0).Microseconds()
	b = strconv.AppendInt(append(b, name...), micros/1e6, 10)
	b = append(b, '.')
	for unit := int64(1e5); unit > 0; unit /= 10 {
		b = append(b, '0'+byte(micros/unit%10))
	}
	return b
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
	for i := 0; i < len(s); {
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
