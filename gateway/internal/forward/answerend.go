package forward

// answerEnd follows the body of an answer, so that bytes behind it are known for what
// they are: they belong to nothing, and must not become the next answer.
type answerEnd struct {
	left   int64   // of a body of known length; -1: it is not known
	chunks *chunks // of a body in chunks; nil else
}

// endAfter returns the end of the body behind a head.
func endAfter(head *answerHead, bodiless bool) answerEnd {
	switch {
	case bodiless:
		return answerEnd{}
	case head.chunked:
		return answerEnd{chunks: new(chunks)}
	}
	return answerEnd{left: head.length}
}

// follow takes the next bytes and returns how many of them belong to the body. Chunks
// that are broken are left to the reader of the body.
func (e *answerEnd) follow(p []byte) int {
	if e.chunks != nil {
		n, err := e.chunks.follow(p)
		if err != nil {
			*e = answerEnd{left: -1}
			return len(p)
		}
		return n
	}
	if e.left < 0 {
		return len(p)
	}
	n := min(e.left, int64(len(p)))
	e.left -= n
	return int(n)
}
