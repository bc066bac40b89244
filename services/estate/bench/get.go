package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// get asks a URL once and returns the body of a 200.
func get(ctx context.Context, url string) ([]byte, error) { return call(ctx, http.MethodGet, url, "") }

// call makes one call and returns the body of a 2xx.
func call(ctx context.Context, method, url, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := newClient().Do(req)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	if res.StatusCode/100 != 2 {
		return nil, fmt.Errorf("bench: %s %s: %s: %.200s", method, url, res.Status, text)
	}
	return text, nil
}

// splits asks often and returns an error unless both backends answer about half.
func splits(ctx context.Context, url string) error {
	const calls, least, most = 200, 60, 140 // six standard deviations of a draw
	var fromNew int
	for range calls {
		text, err := get(ctx, url)
		if err != nil {
			return err
		}
		if bytes.Contains(text, []byte("NEW::")) {
			fromNew++
		}
	}
	if fromNew < least || fromNew > most {
		return fmt.Errorf("bench: %s does not split: NEW answered %d of %d", url, fromNew, calls)
	}
	return nil
}
