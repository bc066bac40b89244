package bench

import (
	"context"
	"fmt"
	"os/exec"

	"specialroutes.example/services/estate"
)

// profileVariable tells the gateway's test binary to serve, and where to write the
// profile of its processor time to. The program itself has no such thing.
const profileVariable = "PROFILE_OF_GATEWAY"

// gatewayPackage is the gateway's main.
const gatewayPackage = "specialroutes.example/gateway"

// build builds the estate's programs. With a profile the gateway's test binary takes
// the place of the gateway.
func build(ctx context.Context, dir, profile string) (estate.Binaries, error) {
	bin, err := estate.Build(ctx, dir)
	if err != nil || profile == "" {
		return bin, err
	}
	out, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", bin.Path(estate.Gateway), gatewayPackage).CombinedOutput()
	if err != nil {
		return bin, fmt.Errorf("bench: go test -c: %w: %s", err, out)
	}
	return bin, nil
}

// printProfile prints the most expensive functions of a profile.
func printProfile(ctx context.Context, profile string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-cum", "-nodecount=120", profile).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("bench: go tool pprof: %w: %s", err, out)
	}
	return string(out), nil
}
