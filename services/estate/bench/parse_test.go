package bench

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const wrkReport = `Running 4s test @ http://127.0.0.1:5555/api/organization/x
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     4.02ms    1.99ms  34.90ms   83.33%
    Req/Sec    16.33k     1.52k   20.01k    77.50%
  Latency Distribution
     50%    3.60ms
     75%    4.75ms
     90%    6.20ms
     99%  500.00us 
  65000 requests in 4.00s, 33.11MB read
Requests/sec:  16246.54
Transfer/sec:      8.27MB
`

func TestWrksReportIsRead(t *testing.T) {
	got, err := parseWrk(wrkReport, 3250*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if want := (full{cpu: 50, rate: 16246.54, p99: 0.5}); got != want {
		t.Errorf("parseWrk = %+v, want %+v", got, want)
	}
}

func TestALoadWithErrorsCountsForNothing(t *testing.T) {
	for _, report := range []string{
		wrkReport + "  Non-2xx or 3xx responses: 12\n",
		wrkReport + "  Socket errors: connect 0, read 3, write 0, timeout 0\n",
		strings.Replace(wrkReport, "65000 requests", "0 requests", 1),
		strings.Replace(wrkReport, "99%", "98%", 1),
		"",
	} {
		if got, err := parseWrk(report, time.Second); !errors.Is(err, errLoad) {
			t.Errorf("parseWrk = %+v, %v; want errLoad for\n%s", got, err, report)
		}
	}
}

func TestDecisionsAreReadByTheNumberOfRecords(t *testing.T) {
	got, err := parseDecisions(`goos: linux
BenchmarkDecision/records=10/services=1-2         	 2000000	        21.50 ns/op
BenchmarkDecision/records=10/services=1-2         	 2000000	        22.50 ns/op
BenchmarkDecision/records=10/services=10-2        	 2000000	        99 ns/op
BenchmarkDecision/records=10000/services=1        	 2000000	        23 ns/op
PASS
`)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].records != 10 || got[0].times.median() != 22 || got[1].records != 10000 || got[1].times.median() != 23 {
		t.Errorf("decisions = %+v", got)
	}
	if _, err := parseDecisions("PASS\n"); err == nil {
		t.Error("a report without decisions is no error")
	}
}
