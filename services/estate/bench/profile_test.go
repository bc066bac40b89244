package bench

import (
	"strings"
	"testing"
	"time"
)

const traces = `File: gateway
Type: cpu
Duration: 4.4s, Total samples = 60ms
-----------+-------------------------------------------------------
      10ms   internal/runtime/syscall/linux.Syscall6
             syscall.RawSyscall6
             syscall.write
             specialroutes.example/gateway/internal/forward.(*carriage).write
-----------+-------------------------------------------------------
      20ms   runtime.mallocgc
             specialroutes.example/gateway/internal/filter.forwarded
             specialroutes.example/gateway/internal/forward.(*client).run
-----------+-------------------------------------------------------
      10ms   internal/runtime/syscall/linux.Syscall6
             syscall.write
             specialroutes.example/gateway/internal/accesslog.(*Writer).write
-----------+-------------------------------------------------------
     1.02s   net/textproto.readMIMEHeader
             net/http.ReadRequest
             specialroutes.example/gateway/internal/forward.(*client).run
-----------+-------------------------------------------------------
      10ms   runtime.memmove
-----------+-------------------------------------------------------
`

func TestTimeIsAddedUpByParts(t *testing.T) {
	got, err := parts(traces)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]time.Duration{
		"parsers of net/http": 1020 * time.Millisecond, "filters, without what is above": 20 * time.Millisecond,
		"access log": 10 * time.Millisecond, "system call: write": 10 * time.Millisecond, "all else": 10 * time.Millisecond,
	}
	if len(got) != len(want) || got[0].name != "parsers of net/http" {
		t.Errorf("parts = %v", got)
	}
	for _, p := range got {
		if want[p.name] != p.took {
			t.Errorf("%s took %v, want %v", p.name, p.took, want[p.name])
		}
	}
	if table := partsTable(got, 107); !strings.Contains(table, "| filters, without what is above | 1.9 % | 2.00 |") {
		t.Errorf("of 107 µs, 20 of 1070 ms are 2 µs:\n%s", table)
	}
	if _, err := parts("-----------+---\n  lots   of it\n"); err == nil {
		t.Error("a trace without a time is no error")
	}
}
