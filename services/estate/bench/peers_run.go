package bench

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// logSocket is the socket in the directory of a measurement that HAProxy logs to.
const logSocket = "log.sock"

// writeFiles writes the configurations and the large answer, readable for the user
// that nginx's workers run as.
func writeFiles(dir string, at addresses) error {
	blob := make([]byte, largeSize)
	_, _ = rand.Read(blob) // never fails
	for name, text := range map[string][]byte{
		"backends.conf": []byte(backendsConfig(dir, at)),
		"nginx.conf":    []byte(nginxConfig(dir, at)),
		"haproxy.cfg":   []byte(haproxyConfig(dir, at)),
		largePath:       blob,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
	}
	return nil
}

// startNginx starts an nginx by a configuration in dir.
func startNginx(dir, config string, core int) (*child, error) {
	return startChild(core, "nginx", "-p", dir, "-e", filepath.Join(dir, config+".error"), "-c", filepath.Join(dir, config+".conf"))
}

// startHAProxy starts the HAProxy of dir.
func startHAProxy(dir string, core int) (*child, error) {
	return startChild(core, "haproxy", "-f", filepath.Join(dir, "haproxy.cfg"))
}

// keepLog writes what comes to HAProxy's log socket to a file beside it, until ctx
// ends. Whoever calls the function that it returns waits for that.
func keepLog(ctx context.Context, dir string) (wait func(), err error) {
	socket := filepath.Join(dir, logSocket)
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	if err := os.Chmod(socket, 0o777); err != nil { // HAProxy runs as another user
		return nil, errors.Join(err, conn.Close())
	}
	file, err := os.Create(filepath.Join(dir, "haproxy.access"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bench: %w", err), conn.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer stop()
		defer conn.Close()
		defer file.Close()
		w := bufio.NewWriterSize(file, 64<<10)
		for line := make([]byte, 8<<10); ; {
			n, err := conn.Read(line)
			if err != nil {
				_ = w.Flush() // nobody reads it: it is there for what writing it costs
				return
			}
			_, _ = w.Write(append(line[:n], '\n'))
		}
	}()
	return func() { <-done }, nil
}
