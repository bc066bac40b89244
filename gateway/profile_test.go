package main

import (
	"context"
	"io"
	"os"
	"runtime/pprof"

	"specialroutes.example/services/service"
)

// profileVariable makes this test binary the gateway, with a profile of its
// processor time in the file that the variable names, written when it ends. `make
// profile` uses it. The program itself has no such thing, on no port.
const profileVariable = "PROFILE_OF_GATEWAY"

// serveProfiled serves as main does.
func serveProfiled(file string) {
	service.Main("gateway", func(ctx context.Context, _, environ []string, stderr io.Writer, force <-chan os.Signal) error {
		f, err := os.Create(file)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
		p := program{environ: environ, stdout: os.Stdout, stderr: stderr, force: force}
		return p.run(ctx, nil)
	})
}
