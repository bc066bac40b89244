package forward

// Waiting is how many connections wait for a further request.
func Waiting(s *Server) (n int) {
	s.loop.mu.Lock()
	for t := range s.loop.all {
		if t.state.Load() == connIdle {
			n++
		}
	}
	s.loop.mu.Unlock()
	s.idle.mu.Lock()
	defer s.idle.mu.Unlock()
	for _, state := range s.idle.all {
		if state.idle && !state.silent {
			n++
		}
	}
	return n
}
