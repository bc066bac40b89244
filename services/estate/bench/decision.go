package bench

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

// decision is the time to find one record among many and decide by it, in ns.
type decision struct {
	records int
	times   values
}

// decisionPackage holds the benchmark; it cannot be called from here, for the
// gateway's packages are its own.
const decisionPackage = "specialroutes.example/gateway/internal/records"

var decisionLine = regexp.MustCompile(`(?m)^BenchmarkDecision/records=(\d+)/services=1(?:-\d+)?\s+\d+\s+([\d.]+) ns/op`)

// decisions has go test measure the decision with several numbers of records.
func decisions(ctx context.Context) ([]decision, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run=^$", "-bench=^BenchmarkDecision$/^records=.*$/^services=1$",
		"-benchtime=50ms", "-count=9", decisionPackage)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("bench: go test: %w: %s", err, out)
	}
	return parseDecisions(string(out))
}

func parseDecisions(out string) ([]decision, error) {
	var all []decision
	at := map[string]int{}
	for _, line := range decisionLine.FindAllStringSubmatch(out, -1) {
		records, err := strconv.Atoi(line[1])
		if err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
		ns, err := strconv.ParseFloat(line[2], 64)
		if err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
		i, known := at[line[1]]
		if !known {
			i = len(all)
			at[line[1]] = i
			all = append(all, decision{records: records})
		}
		all[i].times = append(all[i].times, ns)
	}
	if len(all) < 2 {
		return nil, fmt.Errorf("%w: go test prints no decisions:\n%s", errLoad, out)
	}
	return all, nil
}
