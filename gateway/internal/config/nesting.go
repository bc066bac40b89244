package config

import "bytes"

// nestingMost bounds how deep a document may be nested. The settings need a tenth of
// it, and the YAML library's time grows with the square of the depth.
const nestingMost = 64

// nestedAt returns the line in which text is nested too deep, 0 for none. It does not
// parse: brackets count wherever they stand, in quotes too, and so do dashes at the
// beginning of a line. No text that is meant as settings comes near the bound.
func nestedAt(text []byte) int {
	depth, number := 0, 0
	for line := range bytes.Lines(text) {
		number++
		if dashes(line) > nestingMost {
			return number
		}
		if comment := bytes.TrimLeft(line, " \t"); bytes.HasPrefix(comment, []byte("#")) {
			continue
		}
		for _, b := range line {
			switch b {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(0, depth-1)
			}
			if depth > nestingMost {
				return number
			}
		}
	}
	return 0
}

// dashes counts the indicators that begin lists and complex keys in a line, each of
// which nests, and the keys that stand directly behind one another.
func dashes(line []byte) int {
	n := 0
	for field := range bytes.FieldsSeq(line) {
		if len(field) != 1 || field[0] != '-' && field[0] != '?' && field[0] != ':' {
			if field[len(field)-1] != ':' {
				break
			}
		}
		n++
	}
	return n
}
