package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"specialroutes.example/services/estate/procfs"
)

const (
	// idleConnections are held open at once; HAProxy is told to take 4,000.
	idleConnections = 2000
	// settled is how long a program has after the last request to put things away.
	settled = 2 * time.Second
	// warmCalls are made before, so that what is set up once is not counted.
	warmCalls = 200
)

// idleMemory returns the bytes that a process holds more for each of many idle
// connections, each of which has carried one request.
func idleMemory(ctx context.Context, address, path string, pid int) (float64, error) {
	warm, err := net.Dial("tcp", address)
	if err != nil {
		return 0, fmt.Errorf("bench: %w", err)
	}
	defer warm.Close()
	for range warmCalls {
		if err := callOver(warm, address, path); err != nil {
			return 0, err
		}
	}
	if err := sleep(ctx, settled); err != nil {
		return 0, err
	}
	before, err := procfs.MemoryOf(pid)
	if err != nil {
		return 0, err
	}
	for range idleConnections {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return 0, fmt.Errorf("bench: %w", err)
		}
		defer conn.Close() // all at the end
		if err := callOver(conn, address, path); err != nil {
			return 0, err
		}
	}
	if err := sleep(ctx, settled); err != nil {
		return 0, err
	}
	after, err := procfs.MemoryOf(pid)
	if err != nil {
		return 0, err
	}
	return float64(after.Resident-before.Resident) / idleConnections, nil
}

// callOver makes one call over a connection and leaves it open.
func callOver(conn net.Conn, address, path string) error {
	if err := conn.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, address); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s", errLoad, res.Status)
	}
	return nil
}

// sleep waits for d unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("bench: %w", ctx.Err())
	case <-timer.C:
		return nil
	}
}
