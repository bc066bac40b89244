package estate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/goccy/go-yaml"

	"specialroutes.example/services/estate"
	"specialroutes.example/services/service"
)

const (
	parentName     = "parent"
	diesWithParent = runtime.GOOS == "linux"
)

// stub runs as the program of that name, and reports whether there is one.
func stub(name string) bool {
	switch name {
	case parentName:
		parent(os.Args[1], os.Args[2])
	case estate.SpecialRoutes:
		serveStub(name, os.Getenv("SPECIALROUTES_LISTEN"), "")
	case estate.OrgServiceOld, estate.OrgServiceNew, estate.LicensingService:
		serveStub(name, os.Getenv("LISTEN"), "")
	case estate.Gateway:
		text, err := os.ReadFile(os.Getenv("GATEWAY_CONFIG"))
		if err != nil {
			panic(err)
		}
		var c struct{ ID, Listen, Admin string }
		if err := yaml.Unmarshal(text, &c); err != nil {
			panic(err)
		}
		serveStub(c.ID, c.Listen, c.Admin)
	default:
		return false
	}
	return true
}

// parent starts an estate, says so, and waits to be killed.
func parent(dir, bin string) {
	if _, err := estate.Start(context.Background(), estate.Options{Dir: dir, Bin: estate.BinariesIn(bin)}); err != nil {
		panic(err)
	}
	fmt.Println("up")
	select {}
}

// serveStub serves on a data port and perhaps an admin port. STUB says what goes wrong.
func serveStub(name, data, admin string) {
	service.Main(name, func(ctx context.Context, _, _ []string, stderr io.Writer, force <-chan os.Signal) error {
		if err := os.WriteFile(name+".pid", []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
			return err
		}
		mux := http.NewServeMux()
		mux.HandleFunc("/whoami", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) })
		mux.HandleFunc("/crash", func(http.ResponseWriter, *http.Request) { os.Exit(7) })
		mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
			if os.Getenv("STUB") == "never-ready" {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
		switch os.Getenv("STUB") {
		case "fail":
			return errors.New("the stub was told to fail")
		case "deaf":
			signal.Ignore(syscall.SIGTERM)
		}
		endpoints := []service.Endpoint{{Name: "data", Address: data, Server: service.HTTPServer(mux)}}
		if admin != "" {
			endpoints = append(endpoints, service.Endpoint{Name: "admin", Address: admin, Server: service.HTTPServer(mux)})
		}
		return service.Run(ctx, service.Options{
			Name: name, Log: service.NewLogger(stderr, slog.LevelInfo, name), Endpoints: endpoints, Force: force,
			Drain: service.DrainTimes{Limit: 10 * time.Second},
		})
	})
}

// stubPID returns the process ID that a stub wrote into the estate's directory.
func stubPID(dir, name string) int {
	text, err := os.ReadFile(filepath.Join(dir, name+".pid"))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(string(text))
	return pid
}

// running reports whether a process that is not our child runs. One that has ended
// may stay a zombie for a while, until whoever inherited it looks.
func running(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
