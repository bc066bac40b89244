package service_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"specialroutes.example/services/service"
)

func TestNewLogger_WritesDurationsAsSeconds(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := service.NewLogger(&out, slog.LevelInfo, "program").With("wait", 250*time.Millisecond)
	log.Info("done", "duration", 1234567*time.Nanosecond, slog.Group("drain", "limit", time.Minute), "n", 5, "text", "5s")
	var got struct {
		Service, Msg, Text string
		Wait, Duration     float64
		N                  int
		Drain              struct{ Limit float64 }
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	if got.Wait != 0.25 || got.Duration != 0.001235 || got.Drain.Limit != 60 || got.N != 5 || got.Text != "5s" || got.Service != "program" {
		t.Errorf("the line is %s", &out)
	}
}
