package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// arrivals counts the requests that arrive by what names them.
type arrivals struct {
	mu    sync.Mutex
	count map[string]int
}

func (a *arrivals) note(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.count[r.Header.Get("X-Order")]++
	a.mu.Unlock()
	w.WriteHeader(http.StatusCreated)
}

func (a *arrivals) of(order string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count[order]
}

// post sends orders, so many a second, until stop is closed, and returns those that
// were not answered with 201.
func post(url string, perSecond int, stop <-chan struct{}) (sent int, failed []string) {
	var mu sync.Mutex
	var calls sync.WaitGroup
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for {
		select {
		case <-stop:
			calls.Wait()
			return sent, failed
		case <-tick.C:
		}
		order := fmt.Sprint("order-", sent)
		sent++
		calls.Go(func() {
			got, err := do("POST", url, strings.NewReader(`{"amount":1}`), headers{{"X-Order", order}})
			if err == nil && got.status == http.StatusCreated {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, order)
		})
	}
}

// A request that would be done twice if it were sent again is not, and one that has
// not been sent is not lost: only orders that the dying instance had read may fail.
func TestOneOfThreeInstancesKilledDoublesAndLosesNoPost(t *testing.T) {
	t.Parallel()
	all := &arrivals{count: map[string]int{}}
	dying := newUpstream(t, "dying", all.note)
	second, third := newUpstream(t, "second", all.note), newUpstream(t, "third", all.note)
	l := newLab(t, labOptions{old: dying, config: map[string]string{
		"instances": fmt.Sprintf("{%s: [{id: a, address: %q}, {id: b, address: %q}, {id: c, address: %q}]}",
			labService, dying.addr(), second.addr(), third.addr()),
	}})
	stop, done := make(chan struct{}), make(chan struct{})
	var sent int
	var failed []string
	go func() {
		defer close(done)
		sent, failed = post(l.base+"/orders", 500, stop)
	}()
	poll(t, 30*time.Second, "the instance takes orders", func() error {
		if n := dying.count(); n < 100 {
			return fmt.Errorf("%d orders", n)
		}
		return nil
	})
	// As a killed process does: no more connects, and those there are break.
	_ = dying.Listener.Close()
	dying.CloseClientConnections()
	before := second.count()
	poll(t, 30*time.Second, "the others go on", func() error {
		if n := second.count() - before; n < 300 {
			return fmt.Errorf("%d orders", n)
		}
		return nil
	})
	close(stop)
	<-done
	t.Logf("%d orders, %d failed", sent, len(failed))
	for _, order := range failed {
		if all.of(order) == 0 {
			t.Errorf("%s failed and reached no instance: it could have been sent to another one", order)
		}
	}
	for order, n := range all.count {
		if n > 1 {
			t.Errorf("%s arrived %d times", order, n)
		}
	}
}
