//go:build linux

package forward_test

import (
	"runtime"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/forward"
)

// Connections on which nothing has come make room first, whoever has them: a client
// that only connects must neither keep others out nor cost them their connections.
func TestSilentConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*forward.Server){
		"the loop":   func(*forward.Server) {},
		"net/http's": func(s *forward.Server) { s.Loop = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const kept, silent = 3, 5
			l := newLooping(t, saying("ok"), setup{server: func(s *forward.Server) {
				s.MaxConnections = kept + silent
				change(s)
			}})
			ask := func(p *peer) {
				t.Helper()
				p.send(getX)
				if _, body := p.answer(); body != "ok" {
					t.Fatalf("answer %q", body)
				}
			}
			var keep []*peer
			for range kept {
				keep = append(keep, l.dial(t))
				ask(keep[len(keep)-1])
			}
			for end := time.Now().Add(soon); forward.Waiting(l.Server) < kept; runtime.Gosched() {
				if time.Now().After(end) {
					t.Fatal("the connections are not idle")
				}
			}
			for range silent {
				l.dial(t)
			}
			time.Sleep(200 * time.Millisecond) // nobody is told that nothing comes
			for range silent - 1 {             // one gives way to who may come next
				ask(l.dial(t))
			}
			for _, p := range keep {
				ask(p)
			}
		})
	}
}

// So do they where there are no others.
func TestOnlySilentConnections(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*forward.Server){
		"the loop":   func(*forward.Server) {},
		"net/http's": func(s *forward.Server) { s.Loop = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLooping(t, saying("ok"), setup{server: func(s *forward.Server) {
				s.MaxConnections = 2
				change(s)
			}})
			for range 6 {
				l.dial(t)
			}
			p := l.dial(t)
			p.send(getX)
			if _, body := p.answer(); body != "ok" {
				t.Errorf("answer %q", body)
			}
		})
	}
}
