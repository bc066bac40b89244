package routing

// maxName is the longest name of a service, variant or rule, in bytes.
const maxName = 63

const nameDetail = "must be 1 to 63 of a-z, 0-9 and hyphen, with no hyphen at either end"

// isName checks the pattern [a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?.
func isName(s string) bool {
	if s == "" || len(s) > maxName || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-') {
			return false
		}
	}
	return true
}

// isToken checks the grammar of header and cookie names (RFC 9110, 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
		case c == '!' || c >= '#' && c <= '\'' || c == '*' || c == '+' || c == '-' || c == '.':
		case c == '^' || c == '_' || c == '`' || c == '|' || c == '~':
		default:
			return false
		}
	}
	return s != ""
}

// ValidService reports whether s can be the service of a record: a name, or *.
func ValidService(s string) bool { return s == Wildcard || isName(s) }
