package bench

import (
	"strings"
	"testing"
)

// sample is a report in which the gateway takes 30 µs, and nginx, the better peer, 25.
func sample() *Report {
	of := func(cpu, rate, p99 float64) *result {
		return &result{cpu: values{cpu, cpu}, rate: values{rate, rate}, p99: values{p99, p99}}
	}
	all := results{nameGateway: of(30, 27000, 4), nameWithout: of(75, 13000, 9), nameNginx: of(25, 30000, 3), nameHAProxy: of(26, 31000, 3)}
	return &Report{
		options: Options{Rounds: 2, Seconds: 4, Connections: 64}, small: all, large: all, paced: all, pace: 15000,
		idle:      map[string]values{nameGateway: {12, 14}},
		decisions: []decision{{10, values{20}}, {10000, values{22}}},
	}
}

func TestTheReportIsMarkdownWithEveryNumber(t *testing.T) {
	text := sample().String()
	for _, row := range []string{
		"| processor time per request, to nginx | ≤ 1.0 | 1.20 (1.20–1.20) |",
		"| requests per second, to HAProxy | ≥ 0.9 | 0.87 (0.87–0.87) |",
		"| processor time per request of `loop: false`, to the gateway with it | ≥ 2 | 2.50 (2.50–2.50) |",
		"| p99 at 15000 requests per second, half of nginx's most, to nginx | ≤ 1.0 | 1.33 (1.33–1.33) |",
		"| memory per idle connection | ≤ 16 KiB | 13.0 (12.0–14.0) KiB |",
		"| deciding by one of 10000 records, to one of 10 | ≤ 1.1 | 1.10, 22.0 (22.0–22.0) ns |",
		"| gateway, `loop: false` | 75.0 (75.0–75.0) | 13000 (13000–13000) |",
	} {
		if !strings.Contains(text, row) {
			t.Errorf("no row %q in\n%s", row, text)
		}
	}
	columns := 0
	for line := range strings.Lines(text) {
		n := strings.Count(line, "|")
		if n > 0 && columns > 0 && n != columns {
			t.Errorf("%d columns after %d: %s", n-1, columns-1, line)
		}
		columns = n
	}
	if got := sample().Ratio(); got != 1.2 {
		t.Errorf("Ratio = %v, want 1.2", got)
	}
}
